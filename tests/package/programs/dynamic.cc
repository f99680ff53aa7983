// Prints every row that the library has: op, row, backend.
#include <gradsmith/gradsmith.h>

#include <iostream>

int main() {
  gradsmith::Registry registry;
  const gradsmith::Status status = gradsmith::RegisterAll(registry);
  if (!status.ok()) {
    std::cerr << status.message() << '\n';
    return 1;
  }
  for (const gradsmith::Row* row : registry.rows()) {
    if (registry.Find(row->op->name, row->types, row->backend) != row) {
      std::cerr << "not found: " << row->op->name << ' ' << row->name << '\n';
      return 1;
    }
    std::cout << row->op->name << ' ' << row->name << ' ' << ToString(row->backend) << '\n';
  }
  return 0;
}
