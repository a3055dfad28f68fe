/* Speed store: the SpeedTable of a store, read and refined. Everybody who measures (remuda run, the
 * controller) and everybody who plans (extender, remuda plan, remuda run) comes here or to
 * planner/speeds/speed_table.h.
 *
 * Writers do not lose each other's observations (store_change()); each observation is added once per call. */
#pragma once

#include "planner/speeds/speed_table.h"
#include "store/store.h"

/* speed_store_refine() - add observations to the store's table, on the store's loop. They are copied. Best
 * effort: a table that cannot be written costs nobody a job. @answer may be NULL. */
void speed_store_refine(struct store *store, const struct speed_table_observation *observations, size_t count,
                        store_answer answer, void *userdata);

/* speed_store_read_now() - the rows of all SpeedTables of a store, with a loop of its own, for programs
 * without one.
 * @spec: as store_options.spec; @kubeconfig: or NULL
 * Return: 0, and a table (perhaps empty; its `trouble` says what could not be read) for speed_table_free();
 * what store_open() says; -ETIMEDOUT. */
int speed_store_read_now(const char *spec, const char *kubeconfig, struct speed_table *ret, struct err *err);

/* speed_store_refine_now() - speed_store_refine() in the same way. Return: 0 or a negative errno. */
int speed_store_refine_now(const char *spec, const char *kubeconfig,
                           const struct speed_table_observation *observations, size_t count, struct err *err);
