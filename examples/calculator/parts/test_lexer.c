#include "calc.h"

#include <assert.h>

int main(void)
{
    struct token tokens[TOKENS];
    assert(split(" 1.5*(2 )", tokens).fault == FINE);
    assert(tokens[0].kind == NUMBER && tokens[0].value == 1.5 && tokens[0].at == 1);
    assert(tokens[1].kind == TIMES && tokens[2].kind == OPEN && tokens[3].value == 2);
    assert(tokens[4].kind == CLOSE && tokens[5].kind == END);
    assert(split("1 + x", tokens).fault == BAD_CHARACTER && split("1 + x", tokens).at == 4);
    char many[TOKENS + 1];
    for (int i = 0; i < TOKENS; i++)
        many[i] = '+';
    many[TOKENS] = 0;
    assert(split(many, tokens).fault == TOO_LONG);
    return 0;
}
