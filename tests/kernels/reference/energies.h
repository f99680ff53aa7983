#ifndef GRADSMITH_TESTS_KERNELS_REFERENCE_ENERGIES_H_
#define GRADSMITH_TESTS_KERNELS_REFERENCE_ENERGIES_H_

#include "reference/oracle.h"

namespace gradsmith::reference::energies {

const Oracle& EnergyPool();
const Oracle& EnergyPoolGrad();

}  // namespace gradsmith::reference::energies

#endif  // GRADSMITH_TESTS_KERNELS_REFERENCE_ENERGIES_H_
