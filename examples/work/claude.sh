#!/bin/sh
# Claude Code as a worker. It does one task, the JSON on standard input, in the current directory:
#
#     callboard work --agents 3 --worktree --timeout 30m --token-budget 2000000 -- examples/work/claude.sh
#
# A conversation that was interrupted is taken up again: its id is the task's checkpoint. Needs jq.
set -eu
task=$(cat)
session=$(printf '%s' "$task" | jq -r '.checkpoint.session // empty')
if [ -n "$session" ]; then
    set -- --resume "$session"
else
    session=$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen | tr 'A-Z' 'a-z')
    set -- --session-id "$session"
fi
# The worker keeps this line, whatever becomes of us.
printf '::callboard::checkpoint {"session": "%s"}\n' "$session"

answer=$(printf '%s' "$task" | claude --print --output-format json --permission-mode acceptEdits "$@" \
    "Do the task that the JSON on standard input holds: its title, description and context, with what earlier attempts \
left. Change files in this directory only, run its tests, and do not commit. End with two sentences on what you did.") || {
    code=$?
    printf '%s\n' "$answer"
    exit $code
}
printf '%s' "$answer" | jq -c 'if .is_error then {error: {category: "transient", message: .result}} else
    {summary: .result, session: .session_id, tokens: ([.usage.input_tokens, .usage.output_tokens] | add)} end'
test "$(printf '%s' "$answer" | jq -r '.is_error')" != true
