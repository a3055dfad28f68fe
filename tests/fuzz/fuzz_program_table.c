/* Any bytes as a program table: never a crash, and what was accepted has absolute paths alone. */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/yaml/yaml_parse.h"
#include "job/spec/program_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct program_table table;
        struct err err = { 0 };
        json_t *value = NULL;
        int r;

        if (size > PROGRAM_TABLE_MAX_BYTES || yaml_parse((const char *) data, size, &value, &err) < 0)
                return 0;
        r = program_table_decode(value, &table, &err);
        if (r < 0 && (table.count != 0 || err.msg[0] == '\0'))
                __builtin_trap();
        for (size_t i = 0; i < table.count; i++)
                if (table.programs[i].path == NULL || table.programs[i].path[0] != '/' ||
                    program_table_find(&table, table.programs[i].runtime) == NULL)
                        __builtin_trap();
        program_table_free(&table);
        json_decref(value);
        return 0;
}
