#include "calc.h"

const char *explain(enum fault fault)
{
    switch (fault) {
    case FINE:
        return "nothing is wrong";
    case BAD_CHARACTER:
        return "this character means nothing here";
    case TOO_LONG:
        return "the expression is too long";
    case EXPECTED_NUMBER:
        return "a number should be here";
    case EXPECTED_CLOSE:
        return "a closing bracket should be here";
    case EXPECTED_END:
        return "the expression should end here";
    case DIVIDED_BY_ZERO:
        return "this divides by zero";
    }
    return "unknown";
}
