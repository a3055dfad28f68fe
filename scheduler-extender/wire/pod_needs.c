/* Three quantities added up over containers, sidecars and init containers. */
#include "scheduler-extender/wire/pod_needs.h"

#include <errno.h>

#include "base/quantity.h"
#include "base/text.h"
#include "scheduler-extender/wire/pod_chips.h"

static const struct request_needs nothing;

/* Return: -1 = it says nothing that can be read. */
static int64_t read_quantity(const struct json_field *list, const char *name, bool milli)
{
        struct json_field at = json_field_get(list, name);
        const char *text = json_string_value(at.value);
        char number[40];
        int64_t value = -1;
        int r;

        if (json_is_number(at.value)) { /* 24 bytes at most */
                (void) text_format(number, sizeof(number), "%.17g", json_number_value(at.value));
                text = number;
        }
        if (text == NULL)
                return -1;
        r = (milli ? quantity_parse_milli : quantity_parse)(text, &value);
        if (r == -ERANGE)
                return text[0] == '-' ? -1 : REQUEST_NEED_MAX;
        return r < 0 || value < 0 ? -1 : value < REQUEST_NEED_MAX ? value : REQUEST_NEED_MAX;
}

static struct request_needs read_list(const struct json_field *list)
{
        return (struct request_needs){ .cpu_milli = read_quantity(list, "cpu", true),
                                       .memory_bytes = read_quantity(list, "memory", false),
                                       .storage_bytes = read_quantity(list, "ephemeral-storage", false) };
}

static int64_t said(int64_t first, int64_t second)
{
        return first >= 0 ? first : second;
}

/* What is said in `first`, else in `second`. */
static struct request_needs said_first(struct request_needs first, struct request_needs second)
{
        return (struct request_needs){ .cpu_milli = said(first.cpu_milli, second.cpu_milli),
                                       .memory_bytes = said(first.memory_bytes, second.memory_bytes),
                                       .storage_bytes = said(first.storage_bytes, second.storage_bytes) };
}

/* Requests, and limits where there is no request. */
static struct request_needs read_resources(const struct json_field *of)
{
        struct json_field resources = json_field_get(of, "resources"),
                          requests = json_field_get(&resources, "requests"),
                          limits = json_field_get(&resources, "limits");

        return said_first(read_list(&requests), read_list(&limits));
}

static int64_t add(int64_t a, int64_t b)
{
        return a < REQUEST_NEED_MAX - b ? a + b : REQUEST_NEED_MAX;
}

static struct request_needs sum(struct request_needs a, struct request_needs b)
{
        b = said_first(b, nothing);
        return (struct request_needs){ .cpu_milli = add(a.cpu_milli, b.cpu_milli),
                                       .memory_bytes = add(a.memory_bytes, b.memory_bytes),
                                       .storage_bytes = add(a.storage_bytes, b.storage_bytes) };
}

static int64_t larger(int64_t a, int64_t b)
{
        return a > b ? a : b;
}

static struct request_needs most(struct request_needs a, struct request_needs b)
{
        return (struct request_needs){ .cpu_milli = larger(a.cpu_milli, b.cpu_milli),
                                       .memory_bytes = larger(a.memory_bytes, b.memory_bytes),
                                       .storage_bytes = larger(a.storage_bytes, b.storage_bytes) };
}

struct request_needs pod_needs_decode(const struct json_field *spec)
{
        struct json_field inits = json_field_get(spec, "initContainers"),
                          containers = json_field_get(spec, "containers"),
                          overhead = json_field_get(spec, "overhead");
        struct request_needs sidecars = { 0 }, peak = { 0 }, total, own = read_resources(spec);

        for (size_t i = 0; i < json_field_count(&inits); i++) {
                struct json_field container = json_field_at(&inits, i);
                struct request_needs now = sum(sidecars, read_resources(&container));

                peak = most(peak, now);
                if (pod_chips_is_sidecar(&container))
                        sidecars = now;
        }
        total = sidecars;
        for (size_t i = 0; i < json_field_count(&containers); i++) {
                struct json_field container = json_field_at(&containers, i);

                total = sum(total, read_resources(&container));
        }
        own.storage_bytes = -1; /* a pod has none of its own */
        return sum(said_first(own, most(total, peak)), read_list(&overhead));
}

struct ledger_room pod_needs_offered(const struct json_field *allocatable)
{
        return (struct ledger_room){ .offered = said_first(read_list(allocatable), nothing),
                                     .pods_offered = said(read_quantity(allocatable, "pods", false), 0) };
}
