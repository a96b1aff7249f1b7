#include "calc.h"

#include <stdio.h>

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "usage: calc EXPRESSION\n");
        return 2;
    }
    struct token tokens[TOKENS];
    struct outcome outcome = split(arguments[1], tokens);
    if (outcome.fault == FINE)
        outcome = evaluate(tokens);
    if (outcome.fault != FINE) {
        fprintf(stderr, "%s\n%*s^ %s\n", arguments[1], (int)outcome.at, "", explain(outcome.fault));
        return 1;
    }
    char text[32];
    format(outcome.value, text, sizeof text);
    puts(text);
    return 0;
}
