// What the scripts share: the server and the model that the environment names, and the work itself.

import { createRequire } from 'node:module';
import path from 'node:path';

export const server = JSON.parse(process.env.SERVER);
export const model = process.env.MODEL;
export const PROMPT = 'Work on the board: register, claim a task, complete it.';
export const requireClient = createRequire(path.join(process.env.NODE_MODULES, 'any.js'));

/** Registers, claims and completes; `call` calls a tool and returns its text. */
export async function work(call) {
  const agent = JSON.parse(await call('register_agent', { role: 'worker' })).agent_id;
  const task = JSON.parse(await call('claim_task', { agent_id: agent })).task.id;
  await call('complete_task', { agent_id: agent, task_id: task, output: 'Written and read again' });
}

/** How many tools the library has made its own. */
export function report(tools) {
  console.log(JSON.stringify({ tools: tools.length }));
}
