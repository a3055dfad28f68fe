/* Any bytes as YAML: never a crash; what was read can be written, and reads back the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml/yaml_dump.h"
#include "base/yaml/yaml_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *value = NULL, *again = NULL;
        struct err err = { 0 };
        char *yaml;

        if (yaml_parse((const char *) data, size, &value, &err) < 0)
                return value != NULL || err.msg[0] == '\0' ? abort(), 0 : 0;
        yaml = yaml_dump(value);
        if (yaml == NULL || yaml_parse(yaml, strlen(yaml), &again, &err) < 0 || !json_equal(value, again))
                abort();
        free(yaml);
        json_decref(value);
        json_decref(again);
        return 0;
}
