/* An exported model's lines and bits, checked before they are used. */
#include "trainer/export/export_file.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/text.h"

#define LINE_MAX_BYTES 128
#define WORDS_MAX      8

struct line {
        char text[LINE_MAX_BYTES];
        char *words[WORDS_MAX];
        size_t count;
};

/* The next text line, cut into words. */
static int read_line(struct export_file *r, struct line *ret)
{
        size_t left = r->size_bytes - r->at, most = left < LINE_MAX_BYTES ? left : LINE_MAX_BYTES;
        const unsigned char *end = memchr(r->bytes + r->at, '\n', most);
        size_t length = end != NULL ? (size_t) (end - (r->bytes + r->at)) : 0;
        char *rest = ret->text, *word;

        if (end == NULL)
                return -EINVAL;
        memcpy(ret->text, r->bytes + r->at, length);
        ret->text[length] = '\0';
        r->at += length + 1;
        ret->count = 0;
        while (ret->count < WORDS_MAX && (word = strsep(&rest, " ")) != NULL)
                ret->words[ret->count++] = word;
        return strlen(ret->text) <= length && rest == NULL ? 0 : -EINVAL;
}

int export_file_open(struct export_file *r, const unsigned char *bytes, size_t size_bytes, struct err *err)
{
        struct line line;
        uint64_t tensors;

        *r = (struct export_file){ .bytes = bytes, .size_bytes = size_bytes };
        if (size_bytes == 0 || read_line(r, &line) < 0 || line.count != 5 ||
            strcmp(line.words[0], "remuda-export") != 0)
                return err_set(err, -EINVAL, "no exported model: it does not begin with 'remuda-export'");
        if (strcmp(line.words[1], "2") != 0)
                return err_set(err, -EINVAL, "version %.20s, this program reads version 2", line.words[1]);
        if (!text_starts_with(line.words[2], "model=") || !text_starts_with(line.words[3], "tensors=") ||
            !text_copy(r->model, sizeof(r->model), line.words[2] + strlen("model=")) ||
            text_parse_uint64(line.words[3] + strlen("tensors="), &tensors) < 0 || tensors > 4096 ||
            (strcmp(line.words[4], "quantise=int8") != 0 && strcmp(line.words[4], "quantise=none") != 0))
                return err_set(err, -EINVAL, "its first line is damaged");
        r->tensors = (size_t) tensors;
        r->int8 = strcmp(line.words[4], "quantise=int8") == 0;
        return 0;
}

static bool is_kept(const unsigned char *bits, size_t i)
{
        return (bits[i / 8] >> (i % 8) & 1) != 0;
}

/* Line, scales, bits and room of a tensor. Return: 0, and where its bits are; its scales are before them. */
static int begin_tensor(struct export_file *r, size_t count, size_t value_bytes, size_t channels,
                        const unsigned char **ret_bits, uint64_t *ret_scales, struct err *err)
{
        struct line line;
        uint64_t number, kept, scales;
        size_t bits = (count + 7) / 8, ones = 0;

        if (r->at >= r->size_bytes || read_line(r, &line) < 0 || line.count != 4 ||
            strcmp(line.words[0], "tensor") != 0 || text_parse_uint64(line.words[1], &number) < 0 ||
            text_parse_uint64(line.words[2], &kept) < 0 || text_parse_uint64(line.words[3], &scales) < 0)
                return err_set(err, -EINVAL, "a tensor's line is damaged");
        if (number != count)
                return err_set(err, -EINVAL, "a tensor has %llu values, the model wants %zu",
                               (unsigned long long) number, count);
        if (scales != channels && (channels == 0 || scales != 1))
                return err_set(err, -EINVAL, "a tensor has %llu scales, the model has %zu channels there",
                               (unsigned long long) scales, channels);
        if ((r->size_bytes - r->at) / sizeof(float) < scales)
                return err_set(err, -EINVAL, "a tensor is cut short");
        r->at += scales * sizeof(float);
        if (r->size_bytes - r->at < bits || kept > count ||
            (r->size_bytes - r->at - bits) / value_bytes < kept)
                return err_set(err, -EINVAL, "a tensor is cut short");
        for (size_t i = 0; i < count; i++)
                ones += is_kept(r->bytes + r->at, i);
        if (ones != kept)
                return err_set(err, -EINVAL, "a tensor promises %llu values and has %zu",
                               (unsigned long long) kept, ones);
        *ret_bits = r->bytes + r->at;
        *ret_scales = scales;
        r->at += bits;
        return 0;
}

int export_file_bytes(struct export_file *r, size_t rows, size_t cols, int8_t *ret, float *ret_scales,
                      struct err *err)
{
        const unsigned char *bits = NULL, *from;
        uint64_t scales = 1;

        if (begin_tensor(r, rows * cols, 1, cols, &bits, &scales, err) < 0)
                return err->code;
        assert(bits != NULL);
        from = bits - scales * sizeof(float);
        for (size_t c = 0; c < cols; c++) {
                memcpy(&ret_scales[c], from + (scales > 1 ? c : 0) * sizeof(float), sizeof(float));
                if (!isfinite(ret_scales[c]) || ret_scales[c] <= 0)
                        return err_set(err, -EINVAL, "a channel's scale is no positive number");
        }
        for (size_t i = 0; i < rows * cols; i++) {
                ret[i] = 0;
                if (is_kept(bits, i))
                        ret[i] = (int8_t) r->bytes[r->at++];
        }
        return 0;
}

int export_file_floats(struct export_file *r, size_t count, float *ret, struct err *err)
{
        const unsigned char *bits = NULL;
        uint64_t scales = 0;

        if (begin_tensor(r, count, sizeof(float), 0, &bits, &scales, err) < 0)
                return err->code;
        assert(bits != NULL);
        for (size_t i = 0; i < count; i++) {
                ret[i] = 0;
                if (!is_kept(bits, i))
                        continue;
                memcpy(&ret[i], r->bytes + r->at, sizeof(float));
                r->at += sizeof(float);
        }
        return 0;
}
