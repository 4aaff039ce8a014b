export { type CaseEnd, type CaseOptions, randomCase } from './check-plan.ts';
