#include "calc.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct outcome split(const char *text, struct token tokens[TOKENS])
{
    static const char signs[] = "+-*/()";
    static const enum kind kinds[] = { PLUS, MINUS, TIMES, DIVIDE, OPEN, CLOSE };
    size_t count = 0;
    const char *at = text;
    for (;;) {
        while (isspace((unsigned char)*at))
            at++;
        struct token token = { END, 0, (size_t)(at - text) };
        const char *sign = *at ? strchr(signs, *at) : NULL;
        if (count == TOKENS)
            return (struct outcome){ TOO_LONG, token.at, 0 };
        if (sign) {
            token.kind = kinds[sign - signs];
            at++;
        } else if (isdigit((unsigned char)*at) || (*at == '.' && isdigit((unsigned char)at[1]))) {
            char *end;
            token.kind = NUMBER;
            token.value = strtod(at, &end);
            at = end;
        } else if (*at) {
            return (struct outcome){ BAD_CHARACTER, token.at, 0 };
        }
        tokens[count++] = token;
        if (token.kind == END)
            return (struct outcome){ FINE, 0, 0 };
    }
}
