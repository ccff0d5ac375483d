/** SQLSTATEs that the gateway tells apart, by the names of Postgres (appendix A of its manual). */
export const sqlStates = {
  checkViolation: '23514',
  readOnlyTransaction: '25006',
  invalidAuthorization: '28000',
  invalidPassword: '28P01',
  invalidCatalogName: '3D000',
  serializationFailure: '40001',
  deadlockDetected: '40P01',
  undefinedColumn: '42703',
  undefinedTable: '42P01',
  duplicateTable: '42P07',
  lockNotAvailable: '55P03',
  queryCanceled: '57014',
  adminShutdown: '57P01',
  internalError: 'XX000',
} as const;
