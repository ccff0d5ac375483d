export type KubernetesApi = readonly { readonly host: string; readonly port: number }[];

const httpsPort = 443;

/** No setting of ours: the kubelet sets these variables. The Service has the second name in every cluster. */
export function readKubernetesApi(environment: NodeJS.ProcessEnv): KubernetesApi {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  if (host === undefined || host === '') return [];
  return [
    { host, port: Number(port ?? httpsPort) },
    { host: 'kubernetes.default.svc', port: httpsPort },
  ];
}
