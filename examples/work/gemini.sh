#!/bin/sh
# Gemini CLI as a worker. It does one task, the JSON on standard input, in the current directory:
#
#     callboard work --agents 3 --worktree --timeout 30m --token-budget 20000000 -- examples/work/gemini.sh
#
# All that the model read and wrote counts against the budget, what came from its cache too. Needs jq.
set -eu
# The prompt comes behind standard input.
answer=$(gemini --approval-mode auto_edit --skip-trust --output-format json \
    ${CALLBOARD_MODEL_ID:+--model "$CALLBOARD_MODEL_ID"} --prompt \
    "Do the task that the JSON above holds: its title, description and context, with what earlier attempts left. \
Change files in this directory only, run its tests, and do not commit. End with two sentences on what you did.") || {
    code=$?
    printf '%s\n' "$answer"
    exit $code
}
printf '%s' "$answer" | jq -c '{summary: .response, tokens: ([.stats.models[]?.tokens.total] | add // 0)}'
