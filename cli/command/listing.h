/* Listing: the forms in which commands that list things print them, and the options that choose one.
 *
 *     table, wide   for people; wide has more columns
 *     json, yaml    one object, the same in both
 *     name          one name a line: what the next command takes
 *     csv           a row a thing (csv.h)
 *
 * A command says which of them it has; another is refused by the option's own row, with their names. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/options.h"
#include "cli/command/csv.h"
#include "cli/command/table.h"

enum listing_form {
        LISTING_TABLE,
        LISTING_WIDE,
        LISTING_JSON,
        LISTING_YAML,
        LISTING_NAME,
        LISTING_CSV,
};

struct listing_arguments {
        const char *output;
        bool no_headers; /* of table, wide and csv; the others have none */
};

#define LISTING_FORMS "table|wide|json|yaml|name|csv"

/* Rows for the command's own option table; `options_` has a member `listing` of struct listing_arguments. */
#define LISTING_ARGUMENTS_ROWS(options_, forms_)                                                             \
        { .name = "output",                                                                                  \
          .letter = 'o',                                                                                     \
          .type = OPTION_CHOICE,                                                                             \
          .offset = offsetof(options_, listing.output),                                                      \
          .value = (forms_),                                                                                 \
          .default_ = "table",                                                                               \
          .help = "how to print" },                                                                          \
        {                                                                                                    \
                .name = "no-headers", .type = OPTION_BOOL, .offset = offsetof(options_, listing.no_headers), \
                .help = "rows alone, without the names of the columns"                                       \
        }

enum listing_form listing_form(const struct listing_arguments *arguments);
bool listing_is_document(enum listing_form form); /* json, yaml */

/* listing_check() - for a part of a command that has fewer forms than the command.
 * @what: "--suggest-classes"; @forms: "table|json"
 * Return: 0, or -EINVAL with a sentence that names them. */
int listing_check(const struct listing_arguments *arguments, const char *what, const char *forms,
                  struct err *err);

/* listing_table() - begin a table for these options. listing_csv() - begin rows on standard output. */
void listing_table(const struct listing_arguments *arguments, const char *const *headings,
                   struct table *table);
struct csv listing_csv(const struct listing_arguments *arguments, const char *const *names);
/* listing_table_end() - print it on standard output and release it. Return: 0 or -ENOMEM. */
int listing_table_end(struct table *table);

/* listing_name() - a line of form `name`, cleaned as cells are. */
void listing_name(const char *name);
