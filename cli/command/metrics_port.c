/* The named port among a pod's containers. */
#include "cli/command/metrics_port.h"

#include <stdint.h>
#include <string.h>

unsigned metrics_port(const json_t *pod)
{
        const json_t *container, *port;
        size_t i, k;

        json_array_foreach(json_object_get(json_object_get(pod, "spec"), "containers"), i, container)
                json_array_foreach(json_object_get(container, "ports"), k, port)
        {
                const char *name = json_string_value(json_object_get(port, "name"));
                json_int_t number = json_integer_value(json_object_get(port, "containerPort"));

                if (name != NULL && strcmp(name, METRICS_PORT_NAME) == 0 && number > 0 &&
                    number <= UINT16_MAX)
                        return (unsigned) number;
        }
        return 0;
}
