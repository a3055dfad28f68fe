/* Top: what `remuda top` of devices (top.c) and of nodes (top_nodes.c) share. */
#pragma once

#include "cli/command/listing.h"

#define TOP_CLEAR "\033[H\033[2J" /* home, and an empty screen */
#define GIB       ((double) (1 << 30))

struct top_options {
        const char *socket, *agent, *store, *kubeconfig, *sort;
        unsigned interval_sec, count;
        bool nodes;
        struct listing_arguments listing;
};

/* top_nodes() - until enough looks, a signal, or a key that ends it.
 * @keys: standard input is a terminal that hands over its keys
 * Return: an exit code; what was wrong is said on standard error. */
int top_nodes(const struct top_options *options, bool terminal, bool keys);

/* top_is_end() - is the key one that ends it? */
bool top_is_end(char key);

/* top_number() - a cell "87 %", "" when it is not known. */
void top_number(struct table *table, double value, const char *unit);

/* top_real() - a number in JSON, null when it is not known. */
json_t *top_real(double value);
