#include "calc.h"

#include <assert.h>
#include <string.h>

int main(void)
{
    for (int fault = FINE; fault <= DIVIDED_BY_ZERO; fault++)
        assert(strcmp(explain((enum fault)fault), "unknown") != 0);
    return 0;
}
