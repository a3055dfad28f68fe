/* Any bytes as a SpeedTable: never a crash; what is refined is a table again, its lines possible, its
 * observation in it. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/speeds/speed_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct speed_table_observation seen[] = { { "aa", "mlp", "H100", 64, 3.5, 4 },
                                                               { "", "mlp", "A", 1, 1e-3, 1 },
                                                               { "aa", "cnn", "H100", 4096, 900, 64 } };
        json_t *json = json_loadb((const char *) data, size, JSON_REJECT_DUPLICATES, NULL), *refined;
        struct speed_table table;
        struct err err = { 0 };

        if (json == NULL || speed_table_decode(json, &table, &err) < 0) {
                json_decref(json);
                return 0;
        }
        speed_table_free(&table);
        refined = speed_table_refine(json, seen, 3, 1000000, &err);
        if (refined == NULL || speed_table_decode(refined, &table, &err) < 0)
                __builtin_trap();
        for (size_t i = 0; i < table.count; i++)
                if (!(table.rows[i].alpha_ms >= 0) || !(table.rows[i].beta_ms > 0) ||
                    !isfinite(table.rows[i].beta_ms))
                        __builtin_trap();
        speed_table_free(&table);
        json_decref(refined);
        json_decref(json);
        return 0;
}
