/* Requests and limits of containers, sidecars and init containers, added up as the kubelet does. */
#include "scheduler-extender/wire/pod_chips.h"

#include <errno.h>
#include <string.h>

#include "base/quantity.h"
#include "base/text.h"
#include "scheduler-extender/claims/claims_json.h"
#include "scheduler-extender/ledger/ledger_chips.h"

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
#define TALLY_MAX 64
struct tally {
        struct {
                const char *name;
                int64_t chips;
        } rows[TALLY_MAX];
        size_t count;
};

/* One reading of a pod: what is wrong is noted, the first of it in words, and reading goes on. */
struct reading {
        struct ledger *ledger;
        struct err *err;
        int result;
        bool unreadable; /* something that holds counts is of another kind */
        bool more;       /* there was no room for a resource, perhaps for chips */
        bool chips_lost;
};

static unsigned rank_of(const struct reading *r, const char *name)
{
        return ledger_chips_rank(r->ledger, symbols_find(&r->ledger->symbols, name, strlen(name)));
}

static bool is_chip(const struct reading *r, const char *name)
{
        return rank_of(r, name) == LEDGER_CHIPS_SURE;
}

static struct err *first_err(const struct reading *r)
{
        return r->result == 0 ? r->err : NULL;
}

/* A member that is an object, or not there. */
static struct json_field object_in(struct reading *r, const struct json_field *in, const char *name)
{
        struct json_field at;

        if (json_field_object(in, name, &at, first_err(r)) >= 0)
                return at;
        r->result = -EBADMSG;
        r->unreadable = true;
        return (struct json_field){ .value = NULL };
}

/* The row that `name` takes the place of where all are taken, or TALLY_MAX. */
static size_t lesser_row(const struct reading *r, const struct tally *tally, const char *name)
{
        unsigned least = rank_of(r, name);
        size_t found = TALLY_MAX;

        for (size_t i = 0; i < TALLY_MAX; i++)
                if (rank_of(r, tally->rows[i].name) < least) {
                        least = rank_of(r, tally->rows[i].name);
                        found = i;
                }
        return found;
}

static void leave_out(struct reading *r, const char *name)
{
        r->more = true;
        r->chips_lost |= rank_of(r, name) > LEDGER_CHIPS_NONE;
}

/* The row of a resource, made if need be. Where all are taken, a chip takes the place of what is none, and
 * what may be one (of a vendor that nobody has heard of) of what is certainly none. */
static int64_t *tally_row(struct reading *r, struct tally *tally, const char *name)
{
        size_t at = 0;

        for (; at < tally->count; at++)
                if (strcmp(tally->rows[at].name, name) == 0)
                        return &tally->rows[at].chips;
        if (at == TALLY_MAX) {
                at = lesser_row(r, tally, name);
                leave_out(r, at == TALLY_MAX ? name : tally->rows[at].name);
        }
        if (at == TALLY_MAX)
                return NULL;
        tally->count += at == tally->count;
        tally->rows[at].name = name;
        tally->rows[at].chips = 0;
        return &tally->rows[at].chips;
}

int pod_chips_read(const struct json_field *at, uint32_t *ret, struct err *err)
{
        const char *text = json_string_value(at->value);
        int64_t value = -1;
        int r = json_is_integer(at->value) || text == NULL ? -EINVAL : quantity_parse(text, &value);

        if (json_is_integer(at->value))
                value = json_integer_value(at->value);
        if (r == -ERANGE)
                value = text[0] == '-' ? -1 : INT64_MAX;
        else if (r < 0 && !json_is_integer(at->value))
                return json_field_error(at, err, "must be a quantity such as 8");
        *ret = value < 0 ? 0 : value < REQUEST_CHIPS_MAX ? (uint32_t) value : REQUEST_CHIPS_MAX;
        if (value < 0 || value > REQUEST_CHIPS_MAX)
                return json_field_error(at, err, "must be in 0..%u, not %lld", REQUEST_CHIPS_MAX,
                                        (long long) value);
        return 0;
}

/* A count that cannot be read is as many as there can be: the pod may hold them. What is wrong with a
 * resource that is no chip is nobody's business here. */
static void add_list(struct reading *r, const struct json_field *resources, const char *list_name,
                     const char *unless, struct tally *tally)
{
        struct json_field list = object_in(r, resources, list_name), other = { .value = NULL };
        const char *name;
        json_t *value;

        if (unless != NULL)
                other = json_field_get(resources, unless);
        json_object_foreach((json_t *) list.value, name, value)
        {
                struct json_field at = json_field_get(&list, name);
                uint32_t chips = REQUEST_CHIPS_MAX;
                int64_t *row;

                if (!pod_chips_extended(name) || strcmp(name, POD_RESOURCE_CLAIM) == 0 ||
                    json_field_get(&other, name).value != NULL)
                        continue;
                if (pod_chips_read(&at, &chips, is_chip(r, name) ? first_err(r) : NULL) < 0 &&
                    is_chip(r, name))
                        r->result = -EBADMSG;
                row = chips == 0 ? NULL : tally_row(r, tally, name);
                if (row != NULL)
                        *row += chips;
        }
}

/* What one container asks for: its requests, and its limits where there is no request. */
static void container_chips(struct reading *r, const struct json_field *container, struct tally *ret)
{
        struct json_field resources = object_in(r, container, "resources");

        if (json_field_is_object(container, first_err(r)) < 0) {
                r->result = -EBADMSG;
                r->unreadable = true;
        }
        ret->count = 0;
        add_list(r, &resources, "requests", NULL, ret);
        add_list(r, &resources, "limits", "requests", ret);
}

static void tally_add(struct reading *r, struct tally *to, const struct tally *more)
{
        for (size_t i = 0; i < more->count; i++) {
                int64_t *row = tally_row(r, to, more->rows[i].name);

                if (row != NULL)
                        *row += more->rows[i].chips;
        }
}

static void tally_max(struct reading *r, struct tally *to, const struct tally *other)
{
        for (size_t i = 0; i < other->count; i++) {
                int64_t *row = tally_row(r, to, other->rows[i].name);

                if (row != NULL && other->rows[i].chips > *row)
                        *row = other->rows[i].chips;
        }
}

bool pod_chips_is_sidecar(const struct json_field *container)
{
        const char *policy = "";

        (void) json_field_string(container, "restartPolicy", &policy, NULL);
        return strcmp(policy, "Always") == 0;
}

/* Init containers run one after the other; sidecars stay. @peak: the most that is asked for at one time. */
static void init_chips(struct reading *r, const struct json_field *spec, struct tally *sidecars,
                       struct tally *peak)
{
        struct json_field list = json_field_get(spec, "initContainers");

        for (size_t i = 0; i < json_field_count(&list); i++) {
                struct json_field container = json_field_at(&list, i);
                struct tally own, now = *sidecars;

                container_chips(r, &container, &own);
                tally_add(r, &now, &own);
                tally_max(r, peak, &now);
                if (pod_chips_is_sidecar(&container))
                        *sidecars = now;
        }
}

/* @add: a name that found no room among the symbols is nobody's now, and may be a node's later. */
static void append(struct reading *r, const char *name, int64_t chips, bool add, struct request *request)
{
        uint32_t resource = pod_chips_symbol(&r->ledger->symbols, name, add);

        if (request->item_count == REQUEST_ITEMS_MAX || (add && resource == 0))
                leave_out(r, name);
        if (request->item_count < REQUEST_ITEMS_MAX)
                request->items[request->item_count++] =
                        (struct request_item){ .resource = resource,
                                               .chips = chips < REQUEST_CHIPS_MAX ? (uint32_t) chips
                                                                                  : REQUEST_CHIPS_MAX };
}

/* In the order in which resources are named, but chips first, by which pods are compared, then what may be
 * chips. */
static void append_tally(struct reading *r, const struct json_field *spec, const struct tally *total,
                         bool add, struct request *request)
{
        for (unsigned rank = LEDGER_CHIPS_SURE + 1; rank-- > LEDGER_CHIPS_NONE;)
                for (size_t i = 0; i < total->count; i++) {
                        if (rank_of(r, total->rows[i].name) != rank)
                                continue;
                        if (rank == LEDGER_CHIPS_SURE && total->rows[i].chips > REQUEST_CHIPS_MAX)
                                r->result =
                                        json_field_error(spec, first_err(r),
                                                         "asks for %lld of %s; at most %u can be asked for",
                                                         (long long) total->rows[i].chips,
                                                         total->rows[i].name, REQUEST_CHIPS_MAX);
                        append(r, total->rows[i].name, total->rows[i].chips, add, request);
                }
}

int pod_chips_decode(const struct json_field *spec, struct ledger *ledger, bool add, struct request *request,
                     struct err *err)
{
        struct reading r = { .ledger = ledger, .err = err };
        struct tally sidecars = { .count = 0 }, peak = { .count = 0 }, own, total;
        struct json_field list;

        if (json_field_array(spec, "initContainers", SIZE_MAX, &list, err) < 0 ||
            json_field_array(spec, "containers", SIZE_MAX, &list, err) < 0) {
                request->unreadable = true;
                return -EBADMSG;
        }
        if (list.value == NULL && json_field_get(spec, "nodeName").value != NULL) {
                request->unreadable = true; /* it runs, so it has some */
                return json_field_error(spec, err, "has no containers");
        }
        init_chips(&r, spec, &sidecars, &peak);
        total = sidecars;
        for (size_t i = 0; i < json_field_count(&list); i++) {
                struct json_field container = json_field_at(&list, i);

                container_chips(&r, &container, &own);
                tally_add(&r, &total, &own);
        }
        tally_max(&r, &total, &peak);
        add_list(&r, spec, "overhead", NULL, &total); /* of its RuntimeClass: kube-scheduler counts it, too */
        append_tally(&r, spec, &total, add, request);
        request->unreadable = r.unreadable;
        request->more = r.more;
        if (r.chips_lost && r.result == 0 && add)
                return json_field_error(spec, err,
                                        "asks for more than the %d resources that are counted: of any other "
                                        "it may hold all that its node has",
                                        REQUEST_ITEMS_MAX);
        return r.result;
}
