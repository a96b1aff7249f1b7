#include "calc.h"

#include <assert.h>

#define EVALUATE(...) evaluate((struct token[]){ __VA_ARGS__, { END, 0, 9 } })
#define N(value) { NUMBER, value, 0 }
#define S(sign) { sign, 0, 1 }

int main(void)
{
    assert(EVALUATE(N(2), S(PLUS), N(3), S(TIMES), N(4)).value == 14);
    assert(EVALUATE(N(8), S(MINUS), N(2), S(MINUS), N(1)).value == 5);
    assert(EVALUATE(S(MINUS), S(OPEN), N(1), S(PLUS), N(1), S(CLOSE)).value == -2);
    assert(EVALUATE(N(1), S(DIVIDE), N(0)).fault == DIVIDED_BY_ZERO);
    assert(EVALUATE(S(OPEN), N(1)).fault == EXPECTED_CLOSE);
    assert(EVALUATE(N(1), S(PLUS)).fault == EXPECTED_NUMBER);
    assert(EVALUATE(N(1), N(2)).fault == EXPECTED_END);
    return 0;
}
