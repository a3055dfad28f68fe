/* Cells are kept row by row; widths are known when the table is printed. */
#include "cli/command/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"

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
        text_harmless(text, TEXT_HARMLESS_ASCII);
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

/* What of a table is printed. */
struct layout {
        size_t widths[TABLE_COLUMNS_MAX]; /* 0 = the column is left out */
        bool known[TABLE_COLUMNS_MAX];    /* some row has something there */
        size_t columns;
};

static void measure(const struct table *table, size_t first, struct layout *ret)
{
        *ret = (struct layout){ .columns = table->columns };
        for (size_t i = first; i < table->cell_count; i++) {
                size_t width = strlen(shown(&table->cells[i])), column = i % table->columns;

                if (width > ret->widths[column])
                        ret->widths[column] = width;
                if (i >= table->columns && table->cells[i].text[0] != '\0')
                        ret->known[column] = true;
        }
}

static size_t line_width(const struct layout *layout)
{
        size_t sum = 0;

        for (size_t i = 0; i < layout->columns; i++)
                sum += layout->widths[i] == 0 ? 0 : layout->widths[i] + (sum > 0 ? 2 : 0);
        return sum;
}

static size_t *widest(struct layout *layout)
{
        size_t *ret = &layout->widths[0];

        for (size_t i = 1; i < layout->columns; i++)
                if (layout->widths[i] > *ret)
                        ret = &layout->widths[i];
        return ret;
}

static void fit(struct layout *layout, size_t width)
{
        for (size_t i = 0; i < layout->columns && line_width(layout) > width; i++)
                if (!layout->known[i])
                        layout->widths[i] = 0;
        while (line_width(layout) > width && *widest(layout) > TABLE_COLUMN_LEAST)
                (*widest(layout))--;
        for (size_t i = layout->columns; i > 1 && line_width(layout) > width; i--)
                layout->widths[i - 1] = 0;
}

/* Cells are one byte a letter (table_clean()), so that no letter is cut in two. */
static void print_cell(const struct table_cell *cell, size_t width, bool last, bool colour, FILE *out)
{
        static const char *const codes[] = { [TABLE_PLAIN] = "",
                                             [TABLE_GOOD] = "\x1b[32m",
                                             [TABLE_WARN] = "\x1b[33m",
                                             [TABLE_BAD] = "\x1b[31m",
                                             [TABLE_FAINT] = "\x1b[2m" };
        bool coloured = colour && cell->colour != TABLE_PLAIN, cut = strlen(shown(cell)) > width;
        size_t bytes = cut ? width - 1 : strlen(shown(cell));

        fprintf(out, "%s%.*s%s%s", coloured ? codes[cell->colour] : "", (int) bytes, shown(cell),
                cut ? "~" : "", coloured ? "\x1b[0m" : "");
        if (!last)
                fprintf(out, "%*s", (int) (width - bytes - cut + 2), "");
}

static void print_line(const struct table_cell *cells, const struct layout *layout, bool colour, FILE *out)
{
        size_t last = 0;

        for (size_t i = 0; i < layout->columns; i++)
                last = layout->widths[i] > 0 ? i : last;
        for (size_t i = 0; i <= last; i++)
                if (layout->widths[i] > 0)
                        print_cell(&cells[i], layout->widths[i], i == last, colour, out);
        fputc('\n', out);
}

static void go_on(const struct table *table, struct layout *layout)
{
        for (size_t i = 0; table->widths != NULL && i < table->columns; i++) {
                if (layout->widths[i] < table->widths[i])
                        layout->widths[i] = table->widths[i];
                table->widths[i] = layout->widths[i];
        }
}

int table_print(const struct table *table, bool colour, FILE *out)
{
        size_t first = table->headless ? table->columns : 0;
        struct layout layout;

        if (table->failed || table->columns == 0 || table->columns > TABLE_COLUMNS_MAX)
                return -ENOMEM;
        measure(table, first, &layout);
        go_on(table, &layout);
        if (table->width > 0)
                fit(&layout, table->width);
        for (size_t i = first; i + table->columns <= table->cell_count; i += table->columns)
                print_line(&table->cells[i], &layout, colour, out);
        return 0;
}

size_t table_width(FILE *out)
{
        const char *columns = getenv("COLUMNS");
        struct winsize size = { 0 };
        uint64_t width = 0;

        if (columns != NULL && text_parse_uint64(columns, &width) == 0 && width > 0 && width <= 10000)
                return (size_t) width;
        if (!isatty(fileno(out)))
                return 0;
        return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool table_wants_colour(FILE *out)
{
        const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

        return isatty(fileno(out)) && (no_color == NULL || no_color[0] == '\0') && term != NULL &&
               strcmp(term, "dumb") != 0;
}
