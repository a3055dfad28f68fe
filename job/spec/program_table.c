/* The table of the programs, and what a runtime, a variable and a path may be called. */
#include "job/spec/program_table.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/json/json_table.h"
#include "base/text.h"

static bool name_is_valid(const char *name)
{
        static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
        size_t length = strlen(name);

        return strchr(first, name[0]) != NULL &&
               strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") == length;
}

static int check_program(const struct json_field *at, void *object, struct err *err)
{
        const struct program_table_row *program = object;
        struct json_field path = json_field_get(at, "path");
        struct json_field sha256 = { .value = json_object_get(at->value, "sha256"),
                                     .in = at,
                                     .name = "sha256" };

        if (json_is_null(sha256.value)) /* the table takes it as absent; who wrote the key wanted a check */
                return json_field_error(&sha256, err,
                                        "has no value; write the digest that `sha256sum PROGRAM` prints, or "
                                        "leave the key out");
        if (program->path[0] != '/')
                return json_field_error(&path, err, "'%.100s' is not absolute; begin it with '/'",
                                        program->path);
        if (strlen(program->path) >= PROGRAM_PATH_MAX_BYTES)
                return json_field_error(&path, err, "longer than %d bytes; use a shorter path",
                                        PROGRAM_PATH_MAX_BYTES - 1);
        return 0;
}

static int decode_sha256(const struct json_field *at, void *field, struct err *err)
{
        const char *digits = "(no string)";
        char *sha256 = field;

        (void) json_field_as_string(at, &digits, NULL);
        if (strlen(digits) != SHA256_HEX_BYTES - 1 ||
            strspn(digits, "0123456789abcdefABCDEF") != SHA256_HEX_BYTES - 1)
                return json_field_error(at, err,
                                        "'%.80s' is not 64 hexadecimal digits in quotes; `sha256sum PROGRAM` "
                                        "prints them",
                                        digits);
        memcpy(sha256, digits, SHA256_HEX_BYTES);
        for (size_t i = 0; i < SHA256_HEX_BYTES; i++)
                if (sha256[i] >= 'A' && sha256[i] <= 'F')
                        sha256[i] = (char) (sha256[i] - 'A' + 'a');
        return 0;
}

static json_t *encode_sha256(const void *field)
{
        return json_string(field);
}

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct program_table_row, member)
static const struct json_table_rule
        name_rule = { name_is_valid, "is not the name of a variable; letters, digits and '_' alone, no value and no '*'" },
        runtime_rule = { job_role_runtime_valid, "not the name of a runtime; small letters, digits and '-', such as cuda or cpu" };
static const struct json_table_row
        word_row = { "", JSON_TABLE_STRING, .size_bytes = sizeof(char *) },
        name_row = { "", JSON_TABLE_STRING, .size_bytes = sizeof(char *), .rule = &name_rule };
static const struct json_table_row program_rows[] = {
        { "path",        JSON_TABLE_STRING, AT(path), .required = true, .mend = "the absolute path of the program" },
        { "args",        JSON_TABLE_LIST,   AT(args), .element = &word_row,
          .count = offsetof(struct program_table_row, arg_count), .max = PROGRAM_ARGS_MAX },
        { "environment", JSON_TABLE_LIST,   AT(environment), .element = &name_row,
          .count = offsetof(struct program_table_row, environment_count), .max = PROGRAM_ENVIRONMENT_MAX, .omit = true },
        { "inherit",     JSON_TABLE_BOOL,   AT(inherits), .omit = true },
        { "sha256",      JSON_TABLE_CUSTOM, AT(sha256), .decode = decode_sha256, .encode = encode_sha256, .omit = true },
        { .name = NULL },
};
#undef AT
static const struct json_table program_row = {
        .rows = program_rows, .size_bytes = sizeof(struct program_table_row), .strict = true,
        .key = offsetof(struct program_table_row, runtime), .key_bytes = JOB_RUNTIME_BYTES, .check = check_program,
};
static const struct json_table_row table_rows[] = {
        { "programs",    JSON_TABLE_MAP, JSON_TABLE_AT(struct program_table, programs), .table = &program_row, .rule = &runtime_rule,
          .count = offsetof(struct program_table, count), .max = PROGRAM_TABLE_MAX, .required = true,
          .mend = "a mapping of runtimes, such as {cpu: {path: /opt/train}}" },
        { .name = NULL },
};
/* clang-format on */
static const struct json_table table_table = { .rows = table_rows,
                                               .size_bytes = sizeof(struct program_table),
                                               .strict = true };

int program_table_decode(const json_t *value, struct program_table *ret, struct err *err)
{
        int r;

        *ret = (struct program_table){ 0 };
        r = json_table_decode(&table_table, value, ret, err);
        return r == -EBADMSG ? -EINVAL : r;
}

json_t *program_table_encode(const struct program_table *table)
{
        return json_table_encode(&table_table, table);
}

bool program_table_steers(const char *name)
{
        return text_starts_with(name, "LD_") || text_starts_with(name, "GLIBC_") ||
               strcmp(name, "GCONV_PATH") == 0;
}

/* Each name stands in the manual of who reads it: OpenMP 5.0 (6.20); ocl-icd's libOpenCL(7) and Khronos'
 * loader; fi_fabric(7); rdma-core's libibverbs; UCX; hwloc ("Components and plugins"); openssl-env(7); JAX
 * ("PJRT plugins"). A vendor's own are in its row. */
bool program_table_loads(const char *name)
{
        static const char *const names[] = {
                "OMP_TOOL_LIBRARIES", "OCL_ICD_VENDORS",
                "OCL_ICD_FILENAMES",  "OPENCL_VENDOR_PATH",
                "OPENCL_LAYERS",      "FI_PROVIDER_PATH",
                "RDMAV_DRIVERS",      "IBV_DRIVERS",
                "UCX_MODULE_DIR",     "HWLOC_PLUGINS_PATH",
                "OPENSSL_CONF",       "OPENSSL_ENGINES",
                "OPENSSL_MODULES",    "PJRT_NAMES_AND_LIBRARY_PATHS",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return program_table_steers(name) || vendor_loads(name);
}

bool program_table_passes(const struct program_table_row *program, const char *name)
{
        for (size_t i = 0; i < program->environment_count; i++)
                if (strcmp(program->environment[i], name) == 0)
                        return true;
        return program->inherits;
}

void program_table_free(struct program_table *table)
{
        if (table != NULL)
                json_table_free(&table_table, table);
}

const struct program_table_row *program_table_find(const struct program_table *table, const char *runtime)
{
        for (size_t i = 0; i < table->count; i++)
                if (strcmp(table->programs[i].runtime, runtime) == 0)
                        return &table->programs[i];
        return NULL;
}
