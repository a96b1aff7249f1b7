#!/bin/sh
# Gemini CLI as a worker. It does one task, the JSON on standard input, in the current directory:
#
#     callboard work --agents 3 --worktree --timeout 30m --token-budget 20000000 -- examples/work/gemini.sh
#
# All that the model read and wrote counts against the budget, what came from its cache too. Needs jq.
set -eu
task=$(cat)
# Of the bundle that --state-scope names: its system prompt, and what refinements say to do better.
system=$(printf '%s' "$task" | jq -r '[.bundle.prompts.system? // empty, (.bundle.context.refinements? // [])[]] | join("\n")')
# The prompt comes behind standard input.
answer=$(printf '%s' "$task" | gemini --approval-mode auto_edit --skip-trust --output-format json \
    ${CALLBOARD_MODEL_ID:+--model "$CALLBOARD_MODEL_ID"} --prompt \
    "${system:+$system

}Do the task that the JSON above holds: its title, description and context, with what earlier attempts left. \
Change files in this directory only, run its tests, and do not commit. End with two sentences on what you did.") || {
    code=$?
    printf '%s\n' "$answer"
    exit $code
}
printf '%s' "$answer" | jq -c '{summary: .response, tokens: ([.stats.models[]?.tokens.total] | add // 0)}'
