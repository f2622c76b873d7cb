/* What the tile printer and parser share. */
#ifndef CPS_IR_TILE_TEXT_H
#define CPS_IR_TILE_TEXT_H

#include "ir/tile.h"

enum { CPS_SPACES = CPS_REG + 1, CPS_ROLES = CPS_DATA + 1 };

#define CPS_TILE_INLINE 16 /* elements of a package constant printed as numbers */

extern const char *const cps_space_names[CPS_SPACES];
extern const char *const cps_role_names[CPS_ROLES];

#endif
