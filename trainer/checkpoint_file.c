/* The bytes of a checkpoint, checked before anything of them is used. */
#include "trainer/checkpoint_file.h"

#include <errno.h>
#include <string.h>

#include "base/sha256.h"
#include "base/text.h"
#include "trainer/data/dealings.h"

static int parse_field(const char **at, const char *name, int base, uint64_t *ret)
{
        const char *p = *at, *end;
        char digits[32];

        if (*p++ != ' ' || !text_starts_with(p, name) || p[strlen(name)] != '=')
                return -EINVAL;
        p += strlen(name) + 1;
        end = p + strcspn(p, " \n");
        if ((size_t) (end - p) >= sizeof(digits))
                return -EINVAL;
        memcpy(digits, p, (size_t) (end - p));
        digits[end - p] = '\0';
        *at = end;
        return base == 16 ? text_parse_hex64(digits, ret) : text_parse_uint64(digits, ret);
}

static int parse_header(const char *line, struct checkpoint_file_facts *f, struct err *err)
{
        uint64_t version, batch, parameters, velocity, dealt_bytes = 0;
        const char *at = line + strlen("remuda-checkpoint");

        if (!text_starts_with(line, "remuda-checkpoint "))
                return err_set(err, -EINVAL, "no checkpoint: it does not begin with 'remuda-checkpoint'");
        if (parse_field(&at, "version", 10, &version) < 0)
                return err_set(err, -EINVAL, "no version in its first line");
        if (version != CHECKPOINT_FILE_VERSION)
                return err_set(err, -EPROTO, "version %llu, this program reads version %d",
                               (unsigned long long) version, CHECKPOINT_FILE_VERSION);
        if (parse_field(&at, "model", 16, &f->model) < 0 || parse_field(&at, "step", 10, &f->step) < 0 ||
            parse_field(&at, "seed", 10, &f->seed) < 0 || parse_field(&at, "batch", 10, &batch) < 0 ||
            parse_field(&at, "parameters", 10, &parameters) < 0 ||
            parse_field(&at, "velocity", 10, &velocity) < 0 ||
            (strcmp(at, "\n") != 0 && parse_field(&at, "shards", 16, &f->shards) < 0) ||
            (strcmp(at, "\n") != 0 && parse_field(&at, "dealt", 10, &dealt_bytes) < 0) ||
            strcmp(at, "\n") != 0 || dealt_bytes > DEALINGS_TEXT_MAX || velocity > 1 || parameters == 0 ||
            parameters > (uint64_t) 1 << 40)
                return err_set(err, -EINVAL, "its first line is damaged");
        f->batch = (size_t) batch;
        f->parameters = (size_t) parameters;
        f->velocity = velocity == 1;
        f->dealt_bytes = (size_t) dealt_bytes;
        return 0;
}

int checkpoint_file_parse(const unsigned char *bytes, size_t size_bytes,
                          struct checkpoint_file_facts *ret_facts, const unsigned char **ret_values,
                          struct err *err)
{
        const unsigned char *newline =
                memchr(bytes, '\n',
                       size_bytes < CHECKPOINT_FILE_HEADER_MAX ? size_bytes : CHECKPOINT_FILE_HEADER_MAX - 2);
        struct checkpoint_file_facts f = { 0 };
        char line[CHECKPOINT_FILE_HEADER_MAX] = { 0 };
        struct sha256 hash;
        uint8_t sum[SHA256_BYTES];
        size_t header, values;

        if (newline == NULL)
                return err_set(err, -EINVAL, "no first line: cut short, or no checkpoint");
        header = (size_t) (newline - bytes) + 1;
        memcpy(line, bytes, header);
        if (parse_header(line, &f, err) < 0)
                return err->code;
        f.dealt = (const char *) bytes + header;
        header += f.dealt_bytes;
        values = f.parameters * sizeof(float) * (f.velocity ? 2 : 1);
        if (size_bytes != header + values + SHA256_BYTES)
                return err_set(err, -EINVAL, "%zu bytes where its first line promises %zu: half written",
                               size_bytes, header + values + SHA256_BYTES);
        sha256_init(&hash);
        sha256_update(&hash, bytes, header + values);
        sha256_final(&hash, sum);
        if (memcmp(sum, bytes + header + values, SHA256_BYTES) != 0)
                return err_set(err, -EINVAL, "its SHA-256 does not match: damaged");
        *ret_facts = f;
        *ret_values = bytes + header;
        return 0;
}
