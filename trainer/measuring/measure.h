/* Measure: the speed of one rank by itself (--measure). */
#pragma once

#include "trainer/training.h"

/* measure_run() - whole steps without exchange, at this rank's share of the batch and at fractions of it,
 * with
 * --measure-layers also every layer; prints one JSON line. Return: 0 or a negative errno. */
int measure_run(struct training *t, struct err *err);
