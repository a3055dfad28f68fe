/* One table for both directions. */
#include "planner/shards/live_shares.h"

#include <errno.h>
#include <stdlib.h>

#include "base/json/json_line.h"
#include "base/json/json_table.h"

#define AT(member) JSON_TABLE_AT(struct live_shares, member)

static const struct json_table_row share_row = { .kind = JSON_TABLE_UINT,
                                                 .size_bytes = sizeof(uint32_t),
                                                 .max = LIVE_SHARES_BATCH_MAX };

static const struct json_table_row rows[] = {
        { "step", JSON_TABLE_UINT, AT(step), .required = true },
        { "shares", JSON_TABLE_LIST, AT(of), .count = offsetof(struct live_shares, count), .min = 1,
          .max = LIVE_SHARES_RANKS_MAX, .element = &share_row, .required = true },
        { .name = NULL },
};

static const struct json_table table = { .rows = rows, .size_bytes = sizeof(struct live_shares) };

void live_shares_encode(const struct live_shares *s, struct text *to)
{
        json_t *object = json_table_encode(&table, s);

        to->failed = to->failed || object == NULL;
        json_line_append(to, object);
}

int live_shares_decode(const char *bytes, size_t size_bytes, struct live_shares *ret, struct err *err)
{
        json_t *object = json_line_load(bytes, size_bytes, LIVE_SHARES_BYTES_MAX, err);
        int r = object != NULL ? 0 : -EBADMSG;

        *ret = (struct live_shares){ 0 };
        if (r == 0)
                r = json_table_decode(&table, object, ret, err);
        json_decref(object);
        return r;
}

int live_shares_check(const struct live_shares *s, size_t ranks, uint64_t batch, struct err *err)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < s->count; i++)
                sum += s->of[i];
        if (s->count != ranks)
                return err_set(err, -EINVAL, "shares: %zu numbers for a world of %zu: one for each is wanted",
                               s->count, ranks);
        if (sum != batch)
                return err_set(err, -EINVAL,
                               "shares: they add up to %llu, the batch is %llu: make them equal",
                               (unsigned long long) sum, (unsigned long long) batch);
        return 0;
}

void live_shares_free(struct live_shares *s)
{
        json_table_free(&table, s);
        s->count = 0;
}
