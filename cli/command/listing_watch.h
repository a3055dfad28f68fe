/* Listing watch: what of a look is printed where a listing goes on (listing.h). Used by listing.c alone. */
#pragma once

#include "cli/command/listing.h"

/* Return: 0 or -ENOMEM. */
int listing_watch_table(const struct listing_arguments *arguments, const struct table *whole);
int listing_watch_csv(const struct listing_arguments *arguments, const struct listing_csv *rows);
