#ifndef CALC_H
#define CALC_H

#include <stddef.h>

enum kind { NUMBER, PLUS, MINUS, TIMES, DIVIDE, OPEN, CLOSE, END };

struct token {
    enum kind kind;
    double value;
    size_t at;
};

enum fault { FINE, BAD_CHARACTER, TOO_LONG, EXPECTED_NUMBER, EXPECTED_CLOSE, EXPECTED_END, DIVIDED_BY_ZERO };

struct outcome {
    enum fault fault;
    size_t at;
    double value;
};

#define TOKENS 256

/* Lexer: the words of a text, the last one END. */
struct outcome split(const char *text, struct token tokens[TOKENS]);

/* Parser: what an expression comes to. */
struct outcome evaluate(const struct token *tokens);

/* Format: a number as people write it. */
void format(double value, char *text, size_t size);

/* Errors: a fault in words. */
const char *explain(enum fault fault);

#endif
