#include "calc.h"

struct reader {
    const struct token *next;
    struct outcome outcome;
};

static double sum(struct reader *reader);

static double fail(struct reader *reader, enum fault fault, size_t at)
{
    if (reader->outcome.fault == FINE)
        reader->outcome = (struct outcome){ fault, at, 0 };
    return 0;
}

static double factor(struct reader *reader)
{
    const struct token *token = reader->next;
    double value;
    switch (token->kind) {
    case NUMBER:
        reader->next++;
        return token->value;
    case MINUS:
        reader->next++;
        return -factor(reader);
    case OPEN:
        reader->next++;
        value = sum(reader);
        if (reader->next->kind != CLOSE)
            return fail(reader, EXPECTED_CLOSE, reader->next->at);
        reader->next++;
        return value;
    default:
        return fail(reader, EXPECTED_NUMBER, token->at);
    }
}

static double product(struct reader *reader)
{
    double value = factor(reader);
    while (reader->next->kind == TIMES || reader->next->kind == DIVIDE) {
        const struct token *sign = reader->next++;
        double other = factor(reader);
        if (sign->kind == TIMES)
            value *= other;
        else if (other != 0)
            value /= other;
        else
            fail(reader, DIVIDED_BY_ZERO, sign->at);
    }
    return value;
}

static double sum(struct reader *reader)
{
    double value = product(reader);
    while (reader->next->kind == PLUS || reader->next->kind == MINUS) {
        const struct token *sign = reader->next++;
        double other = product(reader);
        value += sign->kind == PLUS ? other : -other;
    }
    return value;
}

struct outcome evaluate(const struct token *tokens)
{
    struct reader reader = { tokens, { FINE, 0, 0 } };
    double value = sum(&reader);
    if (reader.next->kind != END)
        fail(&reader, EXPECTED_END, reader.next->at);
    if (reader.outcome.fault == FINE)
        reader.outcome.value = value;
    return reader.outcome;
}
