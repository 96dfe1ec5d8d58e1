/* powers_of_ten.c: the table of powers_of_ten.h. */
#include "codec/number/powers_of_ten.h"

const struct power_of_ten POWERS_OF_TEN[] = {
#include "codec/number/powers_of_ten.inc"
};
