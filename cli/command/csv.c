/* Fields are written as they come: nothing of a row is kept. */
#include "cli/command/csv.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

static void put_quoted(FILE *out, const char *word)
{
        fputc('"', out);
        for (const char *c = word; *c != '\0'; c++) {
                if (*c == '"')
                        fputc('"', out);
                fputc(*c, out);
        }
        fputc('"', out);
}

static void put(struct csv *csv, const char *field)
{
        if (csv->inside)
                fputc(',', csv->out);
        csv->inside = true;
        if (field[strcspn(field, ",\"\r\n")] != '\0')
                put_quoted(csv->out, field);
        else
                fputs(field, csv->out);
}

/* A spreadsheet would calculate it, also where it stands in quotes. */
static bool is_formula(const char *word)
{
        double number;

        return word[0] != '\0' && strchr("=+-@\t\r", word[0]) != NULL && text_parse_double(word, &number) < 0;
}

void csv_word(struct csv *csv, const char *word)
{
        CLEANUP(free_p) char *harmless = NULL;

        if (word != NULL && asprintf(&harmless, "%s%s", is_formula(word) ? "'" : "", word) < 0) {
                harmless = NULL;
                csv->failed = true;
        }
        if (harmless != NULL)
                text_harmless(harmless, TEXT_HARMLESS_LINES);
        put(csv, harmless == NULL ? "" : harmless);
}

void csv_count(struct csv *csv, uint64_t count)
{
        char text[24];

        (void) text_format(text, sizeof(text), "%" PRIu64, count);
        put(csv, text);
}

void csv_known(struct csv *csv, uint64_t count)
{
        if (count == 0)
                csv_word(csv, NULL);
        else
                csv_count(csv, count);
}

void csv_number(struct csv *csv, double number)
{
        char text[32] = "";

        if (isfinite(number))
                (void) text_format(text, sizeof(text), "%.10g", number);
        put(csv, text);
}

void csv_end_row(struct csv *csv)
{
        fputs("\r\n", csv->out);
        csv->inside = false;
        csv->failed = csv->failed || ferror(csv->out) != 0;
}

void csv_header(struct csv *csv, const char *const *names)
{
        for (size_t i = 0; names[i] != NULL; i++)
                csv_word(csv, names[i]);
        csv_end_row(csv);
}

int csv_end(struct csv *csv)
{
        return fflush(csv->out) == 0 && !csv->failed ? 0 : -EIO;
}
