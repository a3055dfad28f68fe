/* Kube reach: is the API server there, and does it know who asks? Asked once before a command of people reads
 * it: lists that are tried again and again are for programs that stay. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* kube_reach() - within five seconds, on a loop of its own.
 * @kubeconfig: as of kubeconfig_load()
 * Return: 0, also where it may not say its version, or has shaken hands (TLS) and is slow to say it: a
 * server under load is given its time by what comes next; -EACCES: it answers 401; -EHOSTUNREACH: nobody is
 * there, or not with a certificate that can be believed; or what kubeconfig_load() says. */
int kube_reach(const char *kubeconfig, struct err *err);

/* kube_reach_refusal() - of what a store says of a list (store_options.trouble): -EACCES or -EPERM when it
 * was refused and will be each time; 0 = something else. */
int kube_reach_refusal(const char *sentence);

/* kube_reach_is_none() - does it say of a kind that there is taken to be nothing of it? */
bool kube_reach_is_none(const char *sentence);

/* kube_reach_is_lost() - does it say that a kind could not be read, which is tried again? */
bool kube_reach_is_lost(const char *sentence);
