/* The words of the option are one list, in the order of the forms. */
#include "cli/command/listing.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command/listing_watch.h"

static const char *const words[] = {
        [LISTING_TABLE] = "table", [LISTING_WIDE] = "wide", [LISTING_JSON] = "json",
        [LISTING_YAML] = "yaml",   [LISTING_NAME] = "name", [LISTING_CSV] = "csv",
};

enum listing_form listing_form(const struct listing_arguments *arguments)
{
        size_t form = 0;

        while (strcmp(words[form], arguments->output) != 0) {
                form++;
                assert(form < ARRAY_SIZE(words)); /* the option's row takes these words alone */
        }
        return (enum listing_form) form;
}

bool listing_is_document(enum listing_form form)
{
        return form == LISTING_JSON || form == LISTING_YAML;
}

int listing_check(const struct listing_arguments *arguments, const char *what, const char *forms,
                  struct err *err)
{
        size_t bytes = strlen(arguments->output);

        for (const char *form = forms; form != NULL; form = strchr(form, '|')) {
                form += *form == '|';
                if (strcspn(form, "|") == bytes && memcmp(form, arguments->output, bytes) == 0)
                        return 0;
        }
        return err_set(err, -EINVAL, "%s has no form '%s': --output is one of %s there", what,
                       arguments->output, forms);
}

void listing_table(const struct listing_arguments *arguments, const char *const *headings,
                   struct table *table)
{
        *table = (struct table){ .headless = arguments->no_headers };
        table_begin(table, headings);
}

int listing_table_end(const struct listing_arguments *arguments, struct table *table)
{
        int r = arguments->watching != NULL ? listing_watch_table(arguments, table)
                                            : table_print(table, table_wants_colour(stdout), stdout);

        table_free(table);
        return r;
}

void listing_csv(const struct listing_arguments *arguments, const char *const *names, struct listing_csv *ret)
{
        *ret = (struct listing_csv){ .csv.out = stdout, .names = names };
        if (arguments->watching != NULL)
                ret->csv.out = open_memstream(&ret->text, &ret->text_bytes);
        else if (!arguments->no_headers)
                csv_header(&ret->csv, names);
}

int listing_csv_end(const struct listing_arguments *arguments, struct listing_csv *rows)
{
        int r = csv_end(&rows->csv);

        if (arguments->watching == NULL)
                return r;
        r = fclose(rows->csv.out) == 0 && r == 0 ? listing_watch_csv(arguments, rows) : -ENOMEM;
        free(rows->text);
        return r;
}

void listing_name(const char *name)
{
        table_line(stdout, "%s", name);
}
