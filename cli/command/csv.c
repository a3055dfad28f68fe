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

/* What a terminal would obey, in place: lines may be several, but nothing else below a space, no DEL, and of
 * U+0080 to U+009F neither byte. */
static void make_harmless(char *word)
{
        for (char *s = word; *s != '\0'; s++)
                if ((unsigned char) *s == 0xc2 && (unsigned char) s[1] >= 0x80 && (unsigned char) s[1] < 0xa0)
                        s[0] = s[1] = '?';
                else if (((unsigned char) *s < ' ' && strchr("\n\r\t", *s) == NULL) || *s == 0x7f)
                        *s = '?';
}

void csv_word(struct csv *csv, const char *word)
{
        CLEANUP(free_p) char *harmless = word != NULL ? strdup(word) : NULL;

        if (csv->inside)
                fputc(',', csv->out);
        csv->inside = true;
        csv->failed = csv->failed || (harmless == NULL && word != NULL);
        if (harmless == NULL)
                return;
        make_harmless(harmless);
        if (harmless[strcspn(harmless, ",\"\r\n")] != '\0')
                put_quoted(csv->out, harmless);
        else
                fputs(harmless, csv->out);
}

void csv_count(struct csv *csv, uint64_t count)
{
        char text[24];

        (void) text_format(text, sizeof(text), "%" PRIu64, count);
        csv_word(csv, text);
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
        csv_word(csv, text);
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
