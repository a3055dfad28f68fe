/* Live words: the sentences of new shares while a world runs, and of what is wrong with a rank's word. Pure.
 */
#pragma once

#include "job/world/live.h"

/* live_words() - what was found, for people, with what to do. @text: of WORLD_TEXT_BYTES */
void live_words(const struct world *world, const struct live *found, char *text);
