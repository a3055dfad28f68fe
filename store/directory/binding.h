/* Binding: which pod is on which node, and which is to go, in journals that survive kills
 * (store/directory/journal.h).
 *
 * Several processes append to the same journals: each bind is decided with the file's lock held, on
 * everything that is committed. */
#pragma once

#include "store/directory/store_dir.h"

int binding_start(struct store_dir *d); /* Return: 0 or a negative errno */
void binding_stop(struct store_dir *d); /* what waits is answered -ECANCELED */

/* binding_read_journals() - what was appended, by whomever, is delivered. Return: 0 or a negative errno. */
int binding_read_journals(struct store_dir *d, struct err *err);

void binding_bind(struct store *store, const struct store_binding *binding, store_answer answer,
                  void *userdata);
void binding_evict(struct store *store, const char *namespace_, const char *name, const char *uid,
                   unsigned grace_sec, store_answer answer, void *userdata);
