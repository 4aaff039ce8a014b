export { createStateBackend } from './create-backend.ts';
