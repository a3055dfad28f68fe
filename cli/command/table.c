/* Cells are kept row by row; widths are known when the table is printed. */
#include "cli/command/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"

void table_begin(struct table *table, const char *const *headings)
{
        for (table->columns = 0; headings[table->columns] != NULL;)
                table->columns++;
        for (size_t i = 0; i < table->columns; i++)
                table_add(table, TABLE_PLAIN, "%s", headings[i]);
}

void table_free(struct table *table)
{
        for (size_t i = 0; i < table->cell_count; i++)
                free(table->cells[i].text);
        free(table->cells);
        *table = (struct table){ 0 };
}

void table_clean(char *text)
{
        for (char *c = text; *c != '\0'; c++)
                if ((unsigned char) *c < ' ' || (unsigned char) *c >= 0x7f)
                        *c = '?';
}

void table_line(FILE *out, const char *fmt, ...)
{
        CLEANUP(free_p) char *text = NULL;
        va_list ap;

        va_start(ap, fmt);
        if (vasprintf(&text, fmt, ap) < 0)
                text = NULL;
        va_end(ap);
        if (text == NULL)
                return;
        table_clean(text);
        fprintf(out, "%s\n", text);
}

void table_add(struct table *table, enum table_colour colour, const char *fmt, ...)
{
        struct table_cell *cell = array_add(&table->cells, &table->cell_count, NULL, sizeof(*cell));
        char *text = NULL;
        va_list ap;

        va_start(ap, fmt);
        if (cell == NULL || vasprintf(&text, fmt, ap) < 0) {
                table->cell_count -= cell != NULL;
                table->failed = true;
                va_end(ap);
                return;
        }
        va_end(ap);
        table_clean(text);
        *cell = (struct table_cell){ .text = text, .colour = colour };
}

static const char *shown(const struct table_cell *cell)
{
        return cell->text[0] != '\0' ? cell->text : "-";
}

static void print_cell(const struct table_cell *cell, size_t width, bool last, bool colour, FILE *out)
{
        static const char *const codes[] = { [TABLE_PLAIN] = "",
                                             [TABLE_GOOD] = "\x1b[32m",
                                             [TABLE_WARN] = "\x1b[33m",
                                             [TABLE_BAD] = "\x1b[31m",
                                             [TABLE_FAINT] = "\x1b[2m" };
        bool coloured = colour && cell->colour != TABLE_PLAIN;

        fprintf(out, "%s%s%s", coloured ? codes[cell->colour] : "", shown(cell), coloured ? "\x1b[0m" : "");
        if (!last)
                fprintf(out, "%*s", (int) (width - strlen(shown(cell)) + 2), "");
}

int table_print(const struct table *table, bool colour, FILE *out)
{
        size_t widths[TABLE_COLUMNS_MAX] = { 0 }, first = table->headless ? table->columns : 0;

        if (table->failed || table->columns == 0 || table->columns > TABLE_COLUMNS_MAX)
                return -ENOMEM;
        for (size_t i = first; i < table->cell_count; i++) {
                size_t width = strlen(shown(&table->cells[i]));

                if (width > widths[i % table->columns])
                        widths[i % table->columns] = width;
        }
        for (size_t i = first; i < table->cell_count; i++) {
                bool last = (i + 1) % table->columns == 0;

                print_cell(&table->cells[i], widths[i % table->columns], last, colour, out);
                if (last)
                        fputc('\n', out);
        }
        return 0;
}

bool table_wants_colour(FILE *out)
{
        const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

        return isatty(fileno(out)) && (no_color == NULL || no_color[0] == '\0') && term != NULL &&
               strcmp(term, "dumb") != 0;
}
