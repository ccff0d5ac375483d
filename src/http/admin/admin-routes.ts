import { newServiceKeySchema, registerUserSchema } from '../../core/account/account-requests.ts';
import type { Route, RouteTable } from '../route-table.ts';
import { registeredUserSchema } from '../schemas/answer-schemas.ts';
import {
  changeUserSchema,
  newUserKeySchema,
  shownUserSchema,
  spendQuerySchema,
  spendReportSchema,
  userPageSchema,
  userRecordSchema,
  usersQuerySchema,
} from './operator-schemas.ts';

/**
 * All routes of the admin API, which the admin port has where there is an admin token (docs/decisions/0018). `user` is
 * an id or an e-mail address. What they answer is what the commands of the same name print with `--json`.
 */
export const adminRoutes = {
  addUser: {
    method: 'POST',
    path: '/admin/users',
    summary: 'Register a user, also where registration is closed; the service key is shown once',
    auth: 'admin-token',
    needsStore: true,
    body: registerUserSchema,
    status: 201,
    answer: registeredUserSchema,
  },
  listUsers: {
    method: 'GET',
    path: '/admin/users',
    summary: 'All users, in the order of their ids',
    auth: 'admin-token',
    needsStore: true,
    query: usersQuerySchema,
    status: 200,
    answer: userPageSchema,
  },
  showUser: {
    method: 'GET',
    path: '/admin/users/{user}',
    summary: 'A user with its keys, none of them in the clear',
    auth: 'admin-token',
    needsStore: true,
    status: 200,
    answer: shownUserSchema,
  },
  changeUser: {
    method: 'PATCH',
    path: '/admin/users/{user}',
    summary: 'Decide for a user; every replica heeds it within a second',
    auth: 'admin-token',
    needsStore: true,
    body: changeUserSchema,
    status: 200,
    answer: userRecordSchema,
  },
  deleteUser: {
    method: 'DELETE',
    path: '/admin/users/{user}',
    summary: 'Erase a user with its e-mail address and all its keys',
    auth: 'admin-token',
    needsStore: true,
    status: 204,
    answer: null,
  },
  addUserKey: {
    method: 'POST',
    path: '/admin/users/{user}/service-keys',
    summary: 'Make another service key of a user; it is shown once',
    auth: 'admin-token',
    needsStore: true,
    body: newServiceKeySchema,
    status: 201,
    answer: newUserKeySchema,
  },
  revokeUserKey: {
    method: 'DELETE',
    path: '/admin/users/{user}/service-keys/{key_id}',
    summary: 'Revoke a service key of a user, the last one too',
    auth: 'admin-token',
    needsStore: true,
    status: 204,
    answer: null,
  },
  readSpend: {
    method: 'GET',
    path: '/admin/spend',
    summary: 'What each user spent in a period, those who spent most first',
    auth: 'admin-token',
    needsStore: true,
    query: spendQuerySchema,
    status: 200,
    answer: spendReportSchema,
  },
} as const satisfies RouteTable;

export type AdminRoutes = typeof adminRoutes;

/** All of them, as equals. */
export const adminRouteList: readonly Route[] = Object.values(adminRoutes);
