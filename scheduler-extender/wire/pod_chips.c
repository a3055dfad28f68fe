/* Requests and limits of containers, sidecars and init containers, added up as the kubelet does. */
#include "scheduler-extender/wire/pod_chips.h"

#include <string.h>

#include "base/quantity.h"
#include "base/text.h"

#define CONTAINERS_MAX 4096

bool pod_chips_extended(const char *name)
{
        const char *slash = strchr(name, '/');
        size_t domain = slash == NULL ? 0 : (size_t) (slash - name);
        static const char own[] = "kubernetes.io";

        if (domain == 0 || slash[1] == '\0' || text_starts_with(name, "requests."))
                return false;
        return domain < sizeof(own) - 1 || strncmp(slash - (sizeof(own) - 1), own, sizeof(own) - 1) != 0;
}

uint32_t pod_chips_symbol(struct symbols *symbols, const char *name, bool add)
{
        return add && symbols->count < SYMBOLS_MAX / 2 ? symbols_add(symbols, name)
                                                       : symbols_find(symbols, name, strlen(name));
}

/* Chips by resource name, while containers are added up. */
struct tally {
        struct {
                const char *name;
                int64_t chips;
        } rows[REQUEST_ITEMS_MAX];
        size_t count;
};

static int64_t *tally_row(struct tally *tally, const char *name)
{
        for (size_t i = 0; i < tally->count; i++)
                if (strcmp(tally->rows[i].name, name) == 0)
                        return &tally->rows[i].chips;
        if (tally->count == REQUEST_ITEMS_MAX)
                return NULL;
        tally->rows[tally->count].name = name;
        tally->rows[tally->count].chips = 0;
        return &tally->rows[tally->count++].chips;
}

int pod_chips_read(const struct json_field *list, const char *name, int64_t *ret, struct err *err)
{
        struct json_field at = json_field_get(list, name);
        int64_t value;

        if (json_is_integer(at.value))
                value = json_integer_value(at.value);
        else if (!json_is_string(at.value) || quantity_parse(json_string_value(at.value), &value) < 0)
                return json_field_error(&at, err, "must be a quantity such as 8");
        if (value < 0 || value > REQUEST_CHIPS_MAX)
                return json_field_error(&at, err, "must be in 0..%u, not %lld", REQUEST_CHIPS_MAX,
                                        (long long) value);
        *ret = value;
        return 0;
}

static int add_list(const struct json_field *resources, const char *list_name, const char *unless,
                    struct tally *tally, struct err *err)
{
        struct json_field list, other = { .value = NULL };
        const char *name;
        json_t *value;
        int r = json_field_object(resources, list_name, &list, err);

        if (unless != NULL)
                other = json_field_get(resources, unless);

        if (r != 0)
                return r < 0 ? r : 0;
        json_object_foreach((json_t *) list.value, name, value)
        {
                int64_t chips = 0, *row;

                if (!pod_chips_extended(name) || json_field_get(&other, name).value != NULL)
                        continue;
                r = pod_chips_read(&list, name, &chips, err);
                if (r < 0)
                        return r;
                row = tally_row(tally, name);
                if (row == NULL)
                        return json_field_error(&list, err, "names more than %d extended resources",
                                                REQUEST_ITEMS_MAX);
                *row += chips;
        }
        return 0;
}

/* What one container asks for: its requests, and its limits where there is no request. */
static int container_chips(const struct json_field *container, struct tally *ret, struct err *err)
{
        struct json_field resources;
        int r = json_field_object(container, "resources", &resources, err);

        *ret = (struct tally){ 0 };
        if (r != 0)
                return r < 0 ? r : 0;
        r = add_list(&resources, "requests", NULL, ret, err);
        return r < 0 ? r : add_list(&resources, "limits", "requests", ret, err);
}

static int tally_add(struct tally *to, const struct tally *more, const struct json_field *at, struct err *err)
{
        for (size_t i = 0; i < more->count; i++) {
                int64_t *row = tally_row(to, more->rows[i].name);

                if (row == NULL)
                        return json_field_error(at, err, "asks for more than %d extended resources",
                                                REQUEST_ITEMS_MAX);
                *row += more->rows[i].chips;
        }
        return 0;
}

static int tally_max(struct tally *to, const struct tally *other, const struct json_field *at,
                     struct err *err)
{
        for (size_t i = 0; i < other->count; i++) {
                int64_t *row = tally_row(to, other->rows[i].name);

                if (row == NULL)
                        return json_field_error(at, err, "asks for more than %d extended resources",
                                                REQUEST_ITEMS_MAX);
                *row = other->rows[i].chips > *row ? other->rows[i].chips : *row;
        }
        return 0;
}

static bool is_sidecar(const struct json_field *container)
{
        const char *policy = "";

        (void) json_field_string(container, "restartPolicy", &policy, NULL);
        return strcmp(policy, "Always") == 0;
}

/* Init containers run one after the other; sidecars stay. @peak: the most that is asked for at one time. */
static int init_chips(const struct json_field *spec, struct tally *sidecars, struct tally *peak,
                      struct err *err)
{
        struct json_field list;
        int r = json_field_array(spec, "initContainers", CONTAINERS_MAX, &list, err);

        if (r != 0)
                return r < 0 ? r : 0;
        for (size_t i = 0; i < json_field_count(&list); i++) {
                struct json_field container = json_field_at(&list, i);
                struct tally own, now = *sidecars;

                r = json_field_is_object(&container, err);
                if (r == 0)
                        r = container_chips(&container, &own, err);
                if (r == 0)
                        r = tally_add(&now, &own, &container, err);
                if (r == 0)
                        r = tally_max(peak, &now, &container, err);
                if (r < 0)
                        return r;
                if (is_sidecar(&container))
                        *sidecars = now;
        }
        return 0;
}

static int main_chips(const struct json_field *spec, struct tally *total, struct err *err)
{
        struct json_field list;
        int r = json_field_array(spec, "containers", CONTAINERS_MAX, &list, err);

        if (r != 0)
                return r < 0 ? r : 0;
        for (size_t i = 0; i < json_field_count(&list); i++) {
                struct json_field container = json_field_at(&list, i);
                struct tally own;

                r = json_field_is_object(&container, err);
                if (r == 0)
                        r = container_chips(&container, &own, err);
                if (r == 0)
                        r = tally_add(total, &own, &container, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

int pod_chips_decode(const struct json_field *spec, struct symbols *symbols, bool add,
                     struct request *request, struct err *err)
{
        struct tally sidecars = { 0 }, peak = { 0 }, total;
        int r = init_chips(spec, &sidecars, &peak, err);

        total = sidecars;
        if (r == 0)
                r = main_chips(spec, &total, err);
        if (r == 0)
                r = tally_max(&total, &peak, spec, err);
        for (size_t i = 0; r == 0 && i < total.count; i++) {
                if (total.rows[i].chips > REQUEST_CHIPS_MAX)
                        return json_field_error(spec, err, "asks for %lld of %s; at most %u can be asked for",
                                                (long long) total.rows[i].chips, total.rows[i].name,
                                                REQUEST_CHIPS_MAX);
                if (total.rows[i].chips == 0)
                        continue;
                request->items[request->item_count++] =
                        (struct request_item){ .resource = pod_chips_symbol(symbols, total.rows[i].name, add),
                                               .chips = (uint32_t) total.rows[i].chips };
        }
        return r;
}
