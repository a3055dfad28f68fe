/* Prefer: choices against the best that there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/prefer.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"

#define NO_GROUP 999u

struct machine {
        struct inventory inventory;
        size_t members[128];
        size_t count;
        struct prefer_map map;
};

static uint32_t next_random(uint32_t *state)
{
        *state = *state * 1664525u + 1013904223u;
        return *state >> 8;
}

/* @group_of, @numa_of: per device; @fabric: of every group */
static void build(struct machine *m, size_t count, const unsigned *group_of, const int *numa_of,
                  const char *fabric, unsigned shares)
{
        memset(m, 0, sizeof(*m));
        inventory_init(&m->inventory);
        m->count = count;
        for (size_t i = 0; i < count; i++) {
                struct device *device = inventory_add_device(&m->inventory);
                struct device_group *group;

                assert_non_null(device);
                (void) text_format(device->group, sizeof(device->group), "g-%u", group_of[i]);
                (void) text_format(device->id, sizeof(device->id), "d%02zu", i);
                (void) text_format(device->pci, sizeof(device->pci), "0000:%02zx:00.0", i);
                device->index = (unsigned) i;
                device->numa = numa_of[i];
                device->usable = true;
                m->members[i] = i;
                if (group_of[i] == NO_GROUP)
                        device->group[0] = '\0';
                if (group_of[i] == NO_GROUP || inventory_find_group(&m->inventory, device->group) != NULL)
                        continue;
                group = inventory_add_group(&m->inventory);
                assert_non_null(group);
                (void) text_copy(group->name, sizeof(group->name), device->group);
                (void) text_copy(group->fabric, sizeof(group->fabric), fabric);
        }
        assert_int_equal(prefer_map_init(&m->map, &m->inventory, m->members, count, shares), 0);
}

static void machine_free(struct machine *m)
{
        prefer_map_free(&m->map);
        inventory_free(&m->inventory);
}

/* Groups of `size` in a row, one NUMA node each. */
static void build_even(struct machine *m, size_t count, size_t size, const char *fabric, unsigned shares)
{
        unsigned groups[128];
        int numas[128];

        for (size_t i = 0; i < count; i++) {
                groups[i] = (unsigned) (i / size);
                numas[i] = (int) (i / size);
        }
        build(m, count, groups, numas, fabric, shares);
}

/* "0,1,5": the positions taken, by the name of each device. */
static void choose(const struct machine *m, const char *available, const char *must, size_t size, char *ret,
                   size_t ret_bytes, struct prefer_answer *ret_answer)
{
        uint16_t have[128] = { 0 }, need[128] = { 0 }, taken[128] = { 0 };
        struct prefer_request request = { .available = have, .must = need, .size = size };
        struct text text = { 0 };

        ret_answer->taken = taken;
        for (size_t i = 0; i < m->count; i++) {
                have[i] = available == NULL || available[i] == '1';
                need[i] = must != NULL && must[i] == '1';
        }
        assert_int_equal(prefer_choose(&m->map, &request, ret_answer), 0);
        for (size_t i = 0; i < m->count; i++)
                if (taken[i] > 0)
                        text_printf(&text, "%s%zu", text.size_bytes == 0 ? "" : ",", i);
        (void) text_copy(ret, ret_bytes, text.data == NULL ? "" : text.data);
        text_free(&text);
        ret_answer->taken = NULL;
}

/* clang-format off */
static const struct {
        const char *what;
        size_t count, group;
        const char *available, *must;
        size_t size;
        const char *taken;
} rules[] = {
        { "one ring of a 910A for four",          8, 4, "11111111", NULL,       4, "0,1,2,3" },
        { "two within a ring",                    8, 4, "11111111", NULL,       2, "0,1" },
        { "eight are both rings",                 8, 4, "11111111", NULL,       8, "0,1,2,3,4,5,6,7" },
        { "one from the broken ring",             8, 4, "11110111", NULL,       1, "5" },
        { "two from the broken ring",             8, 4, "11110111", NULL,       2, "5,6" },
        { "three from the broken ring",           8, 4, "11110111", NULL,       3, "5,6,7" },
        { "four from the whole ring",             8, 4, "01111111", NULL,       4, "4,5,6,7" },
        { "the broken ring has not enough",       8, 4, "00111111", NULL,       3, "4,5,6" },
        { "of two broken rings the tighter",      8, 4, "01110110", NULL,       2, "5,6" },
        { "must decides the ring",                8, 4, "11111111", "00000100", 2, "4,5" },
        { "must in both rings",                   8, 4, "11111111", "10000100", 2, "0,5" },
        { "five: a whole ring and one more",      8, 4, "11111111", NULL,       5, "0,1,2,3,4" },
        { "spread over as few groups as can be", 12, 4, "110011001111", NULL,   6, "0,1,8,9,10,11" },
        { "a mesh of eight has no rings",         8, 8, "11111111", NULL,       4, "0,1,2,3" },
        { "fewer than wanted: all there are",     8, 4, "10000001", NULL,       5, "0,7" },
        { "more must than wanted: all of must",   8, 4, "11111111", "11100000", 1, "0,1,2" },
        { "none wanted",                          8, 4, "11111111", NULL,       0, "" },
        { "nothing there",                        8, 4, "00000000", NULL,       3, "" },
};
/* clang-format on */

static void follows_the_rules(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
                struct prefer_answer answer;
                struct machine m;
                char got[400];

                build_even(&m, rules[i].count, rules[i].group, "hccs", 1);
                choose(&m, rules[i].available, rules[i].must, rules[i].size, got, sizeof(got), &answer);
                if (strcmp(got, rules[i].taken) != 0 || !answer.exact)
                        fail_msg("%s: want %s, got %s%s", rules[i].what, rules[i].taken, got,
                                 answer.exact ? "" : ", not exact");
                machine_free(&m);
        }
}

static void the_pair_with_the_fattest_link(void **state)
{
        struct prefer_answer answer;
        struct machine m;
        char got[400];

        (void) state;
        build_even(&m, 8, 8, "nvlink", 1);
        for (size_t i = 0; i < 8;
             i++) { /* a hybrid cube mesh: two links here and there, reported by one end only */
                struct device *device = &m.inventory.devices[i];

                device->links[0] = (struct device_link){ .width = 1 };
                (void) text_format(device->links[0].peer, 20, "0000:%02zx:00.0", i ^ 1);
                device->link_count = 1;
        }
        m.inventory.devices[2].links[1] = (struct device_link){ .peer = "0000:06:00.0", .width = 2 };
        m.inventory.devices[2].link_count = 2;
        prefer_map_free(&m.map);
        assert_int_equal(prefer_map_init(&m.map, &m.inventory, m.members, 8, 1), 0);
        choose(&m, NULL, NULL, 2, got, sizeof(got), &answer);
        assert_string_equal(got, "2,6");
        choose(&m, "11011111", NULL, 2, got, sizeof(got), &answer);
        assert_string_equal(got, "0,1");
        machine_free(&m);
}

static void the_same_switch_before_the_same_node(void **state)
{
        struct prefer_answer answer;
        struct machine m;
        char got[400];
        unsigned groups[8] = { 0 };
        int numas[8] = { 0, 0, 0, 0, 1, 1, 1, 1 };

        (void) state;
        build(&m, 8, groups, numas, "nvlink", 1);
        for (size_t i = 0; i < 8; i++)
                (void) text_format(m.inventory.devices[i].pci_switch, 20, "0000:%zu0:01.0", (i + 1) / 2);
        prefer_map_free(&m.map);
        assert_int_equal(prefer_map_init(&m.map, &m.inventory, m.members, 8, 1), 0);
        choose(&m, NULL, NULL, 2, got, sizeof(got), &answer);
        assert_string_equal(got, "1,2");
        choose(&m, "10010111", NULL, 2, got, sizeof(got), &answer);
        assert_string_equal(got, "5,6");
        choose(&m, "10110100", NULL, 2, got, sizeof(got), &answer); /* 0 2 3 5: no pair under a switch */
        assert_string_equal(got, "0,2");
        machine_free(&m);
}

static void shares_are_spread(void **state)
{
        struct prefer_answer answer;
        struct machine m;
        uint16_t have[4] = { 4, 2, 4, 3 }, need[4] = { 0 }, taken[4];
        struct prefer_request request = { .available = have, .must = need, .size = 6 };

        (void) state;
        build_even(&m, 4, 4, "nvlink", 4);
        answer.taken = taken;
        assert_int_equal(prefer_choose(&m.map, &request, &answer), 0);
        assert_true(taken[0] == 2 && taken[1] == 1 && taken[2] == 2 && taken[3] == 1);
        need[1] = 2;
        request.size = 4;
        assert_int_equal(prefer_choose(&m.map, &request, &answer), 0);
        assert_true(taken[0] == 1 && taken[1] == 2 && taken[2] == 1 && taken[3] == 0);
        request.size = 99;
        assert_int_equal(prefer_choose(&m.map, &request, &answer), 0);
        assert_int_equal(answer.size, 13);
        machine_free(&m);
}

/* The order of prefer.h once more, the plainest way: a set is a bit mask. */
struct oracle_rank {
        int groups, broken, whole;
        uint64_t weight;
        int left;
};

static struct oracle_rank oracle_rank(const struct machine *m, uint32_t available, uint32_t set)
{
        struct oracle_rank rank = { 0 };

        for (size_t g = 0; g < m->inventory.group_count; g++) {
                int size = 0, have = 0, taken = 0;

                for (size_t i = 0; i < m->count; i++) {
                        if (strcmp(m->inventory.devices[i].group, m->inventory.groups[g].name) != 0)
                                continue;
                        size++;
                        have += (int) (available >> i & 1);
                        taken += (int) (set >> i & 1);
                }
                if (taken == 0)
                        continue;
                rank.groups++;
                rank.broken += have == size && taken < have;
                rank.whole += have == size && taken == have;
                rank.left += have - taken;
        }
        for (size_t i = 0; i < m->count; i++)
                for (size_t j = 0; j < i; j++)
                        if ((set >> i & 1) != 0 && (set >> j & 1) != 0)
                                rank.weight += prefer_map_weight(&m->map, i, j);
        return rank;
}

static bool oracle_before(const struct oracle_rank *a, const struct oracle_rank *b)
{
        if (a->groups != b->groups)
                return a->groups < b->groups;
        if (a->broken != b->broken)
                return a->broken < b->broken;
        if (a->whole != b->whole)
                return a->whole > b->whole;
        if (a->weight != b->weight)
                return a->weight > b->weight;
        return a->left < b->left;
}

/* Of equal sets, is a the one with the smaller positions? Its lowest differing bit is set. */
static bool oracle_smaller(uint32_t a, uint32_t b)
{
        uint32_t differ = a ^ b;

        return (a & (differ & (~differ + 1))) != 0;
}

static uint32_t oracle_choose(const struct machine *m, uint32_t available, uint32_t must, int size)
{
        struct oracle_rank best = { 0 };
        uint32_t chosen = 0;
        bool have = false;

        for (uint32_t set = available;; set = (set - 1) & available) {
                if (__builtin_popcount(set) == size && (set & must) == must) {
                        struct oracle_rank rank = oracle_rank(m, available, set);
                        bool equal = have && !oracle_before(&rank, &best) && !oracle_before(&best, &rank);

                        if (!have || oracle_before(&rank, &best) || (equal && oracle_smaller(set, chosen))) {
                                best = rank;
                                chosen = set;
                                have = true;
                        }
                }
                if (set == 0)
                        return chosen;
        }
}

static void build_random(struct machine *m, uint32_t *random, size_t count)
{
        static const char *const fabrics[] = { "nvlink", "hccs", "pcie-switch", "numa", "none" };
        unsigned groups[16];
        int numas[16];
        size_t kinds = 1 + next_random(random) % 5;

        for (size_t i = 0; i < count; i++) {
                groups[i] = next_random(random) % (unsigned) kinds;
                numas[i] = (int) (next_random(random) % 3) - 1;
        }
        build(m, count, groups, numas, fabrics[next_random(random) % ARRAY_SIZE(fabrics)], 1);
        for (size_t i = 0; i < count; i++) {
                struct device *device = &m->inventory.devices[i];

                if (next_random(random) % 2 == 0)
                        (void) text_format(device->pci_switch, 20, "0000:%u0:00.0", next_random(random) % 4);
                for (device->link_count = 0; device->link_count < next_random(random) % 4;
                     device->link_count++) {
                        struct device_link *link = &device->links[device->link_count];

                        link->width = next_random(random) % 40; /* absurd and asymmetric ones too */
                        (void) text_format(link->peer, 20, "0000:%02x:00.0", next_random(random) % 20);
                }
        }
        prefer_map_free(&m->map);
        assert_int_equal(prefer_map_init(&m->map, &m->inventory, m->members, count, 1), 0);
}

static void compare_with_oracle(const struct machine *m, uint32_t available, uint32_t must, size_t size)
{
        uint16_t have[16], need[16], taken[16];
        struct prefer_request request = { .available = have, .must = need, .size = size };
        struct prefer_answer answer = { .taken = taken };
        uint32_t want = oracle_choose(m, available, must, (int) size), got = 0;

        for (size_t i = 0; i < m->count; i++) {
                have[i] = available >> i & 1;
                need[i] = must >> i & 1;
        }
        assert_int_equal(prefer_choose(&m->map, &request, &answer), 0);
        for (size_t i = 0; i < m->count; i++)
                got |= (uint32_t) taken[i] << i;
        if (got != want || !answer.exact || answer.score != oracle_rank(m, available, want).weight)
                fail_msg("%zu devices, available %x, must %x, size %zu: want %x, got %x", m->count, available,
                         must, size, want, got);
}

static void equals_exhaustive_search_up_to_16(void **state)
{
        uint32_t random = 20261121;

        (void) state;
        for (unsigned round = 0; round < 400; round++) {
                size_t count = 1 + next_random(&random) % (round % 40 == 0 ? 16 : 11);
                uint32_t available = next_random(&random) & ((1u << count) - 1), must;
                struct machine m;
                int most;

                if (round % 2 == 0)
                        available |= next_random(&random) & ((1u << count) - 1);
                most = __builtin_popcount(available);
                must = round % 3 == 0 ? available & next_random(&random) & next_random(&random) : 0;
                if (most == 0)
                        continue;
                build_random(&m, &random, count);
                for (size_t size = (size_t) __builtin_popcount(must); size <= (size_t) most;
                     size += 1 + next_random(&random) % 3)
                        compare_with_oracle(&m, available, must, size);
                machine_free(&m);
        }
}

static void stays_valid_and_bounded_beyond(void **state)
{
        static const size_t sizes[] = { 1, 2, 3, 8, 15, 31, 32, 33, 60, 63, 64 };
        double worst = 0;

        (void) state;
        for (size_t group = 1; group <= 64; group *= 2)
                for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
                        struct prefer_answer answer;
                        struct machine m;
                        char got[400];
                        double begin;

                        build_even(&m, 64, group, "nvlink", 1);
                        begin = ((double) clock_monotonic_usec() / 1e6);
                        choose(&m, NULL, NULL, sizes[s], got, sizeof(got), &answer);
                        if (((double) clock_monotonic_usec() / 1e6) - begin > worst)
                                worst = ((double) clock_monotonic_usec() / 1e6) - begin;
                        assert_int_equal(answer.size, sizes[s]);
                        machine_free(&m);
                }
        print_message("# slowest of 64 devices: %.0f us\n", worst * 1e6);
}

static void whole_groups_stay_whole_beyond(void **state)
{
        struct prefer_answer answer;
        struct machine m;
        char available[65], got[400];

        (void) state;
        build_even(&m, 64, 16, "xgmi", 1);
        memset(available, '1', 64);
        available[64] = '\0';
        memset(available + 20, '0', 4); /* group 1 is broken: 12 left */
        choose(&m, available, NULL, 9, got, sizeof(got), &answer);
        assert_string_equal(got, "16,17,18,19,24,25,26,27,28");
        choose(&m, available, NULL, 16, got, sizeof(got), &answer);
        assert_string_equal(got, "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15");
        choose(&m, available, NULL, 32, got, sizeof(got), &answer);
        assert_string_equal(
                got, "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47");
        machine_free(&m);
}

/* Twice as many as can be searched through: what is given holds must, stays within available, and no single
 * exchange of two devices of one group would make it better. */
static void compare_with_exchanges(const struct machine *m, struct prefer_request *request)
{
        uint16_t taken[64];
        struct prefer_answer answer = { .taken = taken };

        assert_int_equal(prefer_choose(&m->map, request, &answer), 0);
        assert_int_equal(answer.size, request->size);
        for (size_t i = 0; i < m->count; i++)
                assert_true(taken[i] >= request->must[i] && taken[i] <= request->available[i]);
        for (size_t out = 0; out < m->count && m->map.shares == 1; out++)
                for (size_t in = 0; in < m->count; in++) {
                        uint64_t before = 0, after = 0;

                        if (taken[out] == 0 || request->must[out] > 0 || taken[in] > 0 ||
                            request->available[in] == 0 ||
                            m->map.devices[in].group != m->map.devices[out].group)
                                continue;
                        for (size_t i = 0; i < m->count; i++) {
                                if (taken[i] == 0 || i == out)
                                        continue;
                                before += prefer_map_weight(&m->map, i, out);
                                after += prefer_map_weight(&m->map, i, in);
                        }
                        if (after > before)
                                fail_msg("%zu of %zu: %zu for %zu is %llu instead of %llu", request->size,
                                         m->count, in, out, (unsigned long long) after,
                                         (unsigned long long) before);
                }
}

static void no_exchange_makes_it_better_beyond(void **state)
{
        uint32_t random = 7;

        (void) state;
        for (unsigned round = 0; round < 60; round++) {
                uint16_t have[64], need[64];
                struct prefer_request request = { .available = have, .must = need };
                unsigned groups[64], kinds = 1 + next_random(&random) % 4, most = 0, least = 0;
                int numas[64];
                struct machine m;

                for (size_t i = 0; i < 40; i++) {
                        groups[i] = round % 3 == 0 && i % 5 == 0 ? NO_GROUP : next_random(&random) % kinds;
                        numas[i] = (int) (next_random(&random) % 3) - 1;
                }
                build(&m, 40, groups, numas, "nvlink", 1);
                for (size_t i = 0; i < 40; i++) {
                        struct device *device = &m.inventory.devices[i];

                        have[i] = next_random(&random) % 8 != 0;
                        need[i] = have[i] != 0 && next_random(&random) % 12 == 0;
                        most += have[i];
                        least += need[i];
                        if (round % 2 == 0)
                                (void) text_format(device->pci_switch, 20, "0000:%u0:00.0",
                                                   next_random(&random) % 6);
                        if (round % 2 == 0)
                                (void) text_format(device->pci_port, 20, "0000:%u1:00.0",
                                                   next_random(&random) % 3);
                        for (device->link_count = 0; round % 4 < 2 && device->link_count < 4;
                             device->link_count++) {
                                struct device_link *link = &device->links[device->link_count];

                                link->width = next_random(&random) % 30;
                                (void) text_format(link->peer, 20, "0000:%02x:00.0",
                                                   next_random(&random) % 40);
                        }
                }
                prefer_map_free(&m.map);
                assert_int_equal(prefer_map_init(&m.map, &m.inventory, m.members, 40, round % 7 == 6 ? 3 : 1),
                                 0);
                for (size_t i = 0; i < 40 && m.map.shares > 1; i++, most = 120, least = 0) {
                        have[i] = 3;
                        need[i] = 0;
                }
                for (request.size = least; request.size <= most; request.size += 1 + request.size / 5)
                        compare_with_exchanges(&m, &request);
                machine_free(&m);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(follows_the_rules),
                cmocka_unit_test(the_pair_with_the_fattest_link),
                cmocka_unit_test(the_same_switch_before_the_same_node),
                cmocka_unit_test(shares_are_spread),
                cmocka_unit_test(equals_exhaustive_search_up_to_16),
                cmocka_unit_test(stays_valid_and_bounded_beyond),
                cmocka_unit_test(whole_groups_stay_whole_beyond),
                cmocka_unit_test(no_exchange_makes_it_better_beyond),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
