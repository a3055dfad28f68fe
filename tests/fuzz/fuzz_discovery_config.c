/* Any YAML as the keys of discovery: never a crash, and an error says where. */
#include <stdint.h>

#include "agent/discovery/discovery_config.h"
#include "base/yaml/yaml_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct discovery_options options = { 0 };
        struct err err = { 0 };
        json_t *object = NULL;

        if (yaml_parse((const char *) data, size, &object, &err) == 0) {
                err.msg[0] = '\0';
                if (discovery_config_decode(object, &options, &err) < 0 && err.msg[0] == '\0')
                        __builtin_trap();
        }
        json_decref(object);
        discovery_config_free(&options);
        return 0;
}
