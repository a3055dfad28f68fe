/* Reads the lines of a cluster trace, column by name. */
#include "scheduler-extender/replay/trace_csv.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define COLUMNS_MAX 64

enum column { NAME, CPU, MEMORY, CHIPS, MILLI, MODEL, CREATED, DELETED, COLUMN_COUNT };

/* clang-format off */
static const struct {
        const char *names[3];
} columns[] = {
        [NAME]    = { { "name", "sn" } },
        [CPU]     = { { "cpu_milli" } },
        [MEMORY]  = { { "memory_mib" } },
        [CHIPS]   = { { "num_gpu", "gpu" } },
        [MILLI]   = { { "gpu_milli" } },
        [MODEL]   = { { "gpu_spec", "model" } },
        [CREATED] = { { "creation_time" } },
        [DELETED] = { { "deletion_time" } },
};
/* clang-format on */

/* A file being read line by line, in place. */
struct reader {
        char *at;
        size_t line;
        int place[COLUMN_COUNT]; /* which field is the column; -1 = there is none */
        char *fields[COLUMNS_MAX];
        size_t field_count;
};

static bool next_line(struct reader *r)
{
        char *end;

        do {
                if (*r->at == '\0')
                        return false;
                r->line++;
                r->fields[0] = r->at;
                end = strchrnul(r->at, '\n');
                r->at = *end == '\n' ? end + 1 : end;
                *end = '\0';
                if (end > r->fields[0] && end[-1] == '\r')
                        end[-1] = '\0';
        } while (r->fields[0][0] == '\0');
        r->field_count = 1;
        for (char *p = r->fields[0]; (p = strchr(p, ',')) != NULL && r->field_count < COLUMNS_MAX;) {
                *p++ = '\0';
                r->fields[r->field_count++] = p;
        }
        return true;
}

static int find_columns(struct reader *r, struct err *err)
{
        if (!next_line(r))
                return err_set(err, -EBADMSG, "is empty; the first line must name the columns");
        for (size_t c = 0; c < COLUMN_COUNT; c++) {
                r->place[c] = -1;
                for (size_t f = 0; f < r->field_count; f++)
                        for (size_t n = 0; n < 2; n++)
                                if (columns[c].names[n] != NULL &&
                                    strcmp(columns[c].names[n], r->fields[f]) == 0)
                                        r->place[c] = (int) f;
        }
        for (size_t c = NAME; c <= CHIPS; c++)
                if (r->place[c] < 0)
                        return err_set(err, -EBADMSG, "line 1: there is no column '%s'", columns[c].names[0]);
        return 0;
}

static const char *field(const struct reader *r, enum column column)
{
        return r->place[column] < 0 || (size_t) r->place[column] >= r->field_count
                       ? ""
                       : r->fields[r->place[column]];
}

/* A whole number; "3.0" is one; an empty field is `absent`. */
static int number(const struct reader *r, enum column column, uint64_t absent, uint64_t max, uint64_t *ret,
                  struct err *err)
{
        const char *text = field(r, column);
        double value = 0;

        if (text[0] == '\0') {
                *ret = absent;
                return 0;
        }
        if (text_parse_uint64(text, ret) < 0) {
                if (text_parse_double(text, &value) < 0 || value < 0 || value > 9e15 ||
                    value != (double) (uint64_t) value)
                        return err_set(err, -EBADMSG, "line %zu: %s: '%.40s' is not a whole number", r->line,
                                       columns[column].names[0], text);
                *ret = (uint64_t) value;
        }
        if (*ret > max)
                return err_set(err, -EBADMSG, "line %zu: %s: must be at most %llu, not '%.40s'", r->line,
                               columns[column].names[0], (unsigned long long) max, text);
        return 0;
}

static int model_bit(struct trace_csv_models *models, const char *name, size_t bytes)
{
        for (size_t i = 0; i < models->count; i++)
                if (strlen(models->names[i]) == bytes && memcmp(models->names[i], name, bytes) == 0)
                        return (int) i;
        if (models->count == TRACE_MODELS_MAX || bytes >= sizeof(models->names[0]))
                return -1;
        memcpy(models->names[models->count], name, bytes);
        return (int) models->count++;
}

static int model_set(const struct reader *r, struct trace_csv_models *models, uint64_t *ret, struct err *err)
{
        for (const char *p = field(r, MODEL); *p != '\0'; p += *p == '|') {
                size_t bytes = strcspn(p, "|");
                int bit = bytes == 0 ? 0 : model_bit(models, p, bytes);

                if (bit < 0)
                        return err_set(err, -EBADMSG, "line %zu: more than %d models", r->line,
                                       TRACE_MODELS_MAX);
                if (bytes > 0)
                        *ret |= (uint64_t) 1 << bit;
                p += bytes;
        }
        return 0;
}

static size_t count_lines(const char *text)
{
        size_t lines = 1;

        for (; (text = strchr(text, '\n')) != NULL; text++)
                lines++;
        return lines;
}

static int begin(const char *text, size_t size_bytes, char **copy, struct reader *r, struct err *err)
{
        *r = (struct reader){ 0 };
        if (memchr(text, '\0', size_bytes) != NULL)
                return err_set(err, -EBADMSG, "has a zero byte in it: not a CSV file");
        *copy = strndup(text, size_bytes);
        if (*copy == NULL)
                return err_set(err, -ENOMEM, "no memory");
        r->at = *copy;
        return find_columns(r, err);
}

int trace_csv_nodes_decode(const char *text, size_t size_bytes, struct trace_csv_models *models,
                           struct trace_csv_nodes *ret, struct err *err)
{
        struct reader reader;
        uint64_t cpu, memory, chips;
        int r;

        *ret = (struct trace_csv_nodes){ 0 };
        r = begin(text, size_bytes, &ret->text, &reader, err);
        if (r < 0)
                return r;
        ret->nodes = calloc(count_lines(reader.at), sizeof(*ret->nodes));
        ret->names = calloc(count_lines(reader.at), sizeof(*ret->names));
        if (ret->nodes == NULL || ret->names == NULL)
                return err_set(err, -ENOMEM, "no memory");
        while (next_line(&reader)) {
                const char *model = field(&reader, MODEL);
                int bit = model_bit(models, model, strlen(model));

                if (number(&reader, CPU, 0, UINT32_MAX, &cpu, err) < 0 ||
                    number(&reader, MEMORY, 0, UINT32_MAX, &memory, err) < 0 ||
                    number(&reader, CHIPS, 0, REPLAY_CHIPS_MAX, &chips, err) < 0)
                        return -EBADMSG;
                if (bit < 0)
                        return err_set(err, -EBADMSG, "line %zu: more than %d models", reader.line,
                                       TRACE_MODELS_MAX);
                ret->names[ret->count] = field(&reader, NAME);
                ret->nodes[ret->count++] = (struct replay_node){ .cpu_milli = (uint32_t) cpu,
                                                                 .memory_mib = (uint32_t) memory,
                                                                 .chips = (uint32_t) chips,
                                                                 .model = (uint8_t) bit };
        }
        return 0;
}

static int decode_pod(const struct reader *reader, struct trace_csv_models *models, struct replay_pod *pod,
                      struct err *err)
{
        uint64_t cpu, memory, chips, milli;

        if (number(reader, CPU, 0, UINT32_MAX, &cpu, err) < 0 ||
            number(reader, MEMORY, 0, UINT32_MAX, &memory, err) < 0 ||
            number(reader, CHIPS, 0, 4096, &chips, err) < 0 ||
            number(reader, MILLI, CHIP_MILLI, CHIP_MILLI, &milli, err) < 0 ||
            number(reader, CREATED, 0, UINT64_MAX, &pod->created_sec, err) < 0 ||
            number(reader, DELETED, 0, UINT64_MAX, &pod->deleted_sec, err) < 0)
                return -EBADMSG;
        if (chips != 1 || milli == 0) /* only a single chip is shared */
                milli = chips == 0 ? 0 : CHIP_MILLI;
        pod->request = (struct fragmentation_pod){ .cpu_milli = (uint32_t) cpu,
                                                   .memory_mib = (uint32_t) memory,
                                                   .chips = (uint32_t) chips,
                                                   .milli = (uint32_t) milli };
        return model_set(reader, models, &pod->request.models, err);
}

int trace_csv_pods_decode(const char *text, size_t size_bytes, struct trace_csv_models *models,
                          struct trace_csv_pods *ret, struct err *err)
{
        struct reader reader;
        int r;

        *ret = (struct trace_csv_pods){ 0 };
        r = begin(text, size_bytes, &ret->text, &reader, err);
        if (r < 0)
                return r;
        assert(reader.at != NULL);
        ret->pods = calloc(count_lines(reader.at), sizeof(*ret->pods));
        ret->names = calloc(count_lines(reader.at), sizeof(*ret->names));
        if (ret->pods == NULL || ret->names == NULL)
                return err_set(err, -ENOMEM, "no memory");
        while (next_line(&reader)) {
                r = decode_pod(&reader, models, &ret->pods[ret->count], err);
                if (r < 0)
                        return r;
                ret->names[ret->count++] = field(&reader, NAME);
        }
        return 0;
}

void trace_csv_nodes_free(struct trace_csv_nodes *nodes)
{
        free(nodes->nodes);
        free(nodes->names);
        free(nodes->text);
        *nodes = (struct trace_csv_nodes){ 0 };
}

void trace_csv_pods_free(struct trace_csv_pods *pods)
{
        free(pods->pods);
        free(pods->names);
        free(pods->text);
        *pods = (struct trace_csv_pods){ 0 };
}
