#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import { reportFailure } from './output.ts';
import { createProgram } from './program.ts';

try {
  await createProgram(new Command()).parseAsync();
} catch (error) {
  // Commander has already said what was wrong with the command line.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else process.exitCode = reportFailure(error, process.argv.includes('--json'));
}
