#include "calc.h"

#include <assert.h>
#include <string.h>

static int is(double value, const char *wanted)
{
    char text[32];
    format(value, text, sizeof text);
    return strcmp(text, wanted) == 0;
}

int main(void)
{
    assert(is(14, "14") && is(0.1 + 0.2, "0.3") && is(-0.0, "0") && is(1.0 / 3, "0.333333333333"));
    return 0;
}
