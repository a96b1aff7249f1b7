#include "calc.h"

#include <stdio.h>

void format(double value, char *text, size_t size)
{
    snprintf(text, size, "%.12g", value == 0 ? 0 : value);
}
