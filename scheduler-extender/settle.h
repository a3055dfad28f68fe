/* Settle: a bind of no clear end is repeated until the pod itself tells. */
#pragma once

#include "store/store.h"

struct extender;

void settle_bind(struct extender *x, const struct store_binding *binding);
void settle_abandon(struct extender *x); /* another leads */
void settle_close(struct extender *x);   /* forget them all */
