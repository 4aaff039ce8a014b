export { fetchLiveFigures, type LiveFigures } from './live-figures.ts';
export { Stack, type StackOptions } from './stack/stack.ts';
